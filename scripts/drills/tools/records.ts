import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const organizationId = 'acme';

type Records = Record<string, readonly object[]>;

const count = 12;
const user = (index: number): string => `u${index}`;

/** The initial organization. Its names differ in more than case. */
export const before: Records = recordsWith({
  names: (index) => `Name${index}`,
  denied: ['Root', 'admin', 'Straße', 'moderator'],
  changedAt: '2026-01-01T00:00:00Z',
});

/** The same organization a while later: names are swapped, moved on and given up, and a user is new. */
export const after: Records = recordsWith({
  names: (index) => ['Name1', 'Name0', 'Name3', 'Name4', 'Fresh', '', 'Name5'][index] ?? `Name${index}`,
  denied: ['Root', 'admin', 'Straße', 'owner', 'Support'],
  changedAt: '2026-02-01T00:00:00Z',
  more: [{ organizationId, userId: 'newcomer', username: 'Newcomer', updatedAt: '2026-02-01T00:00:00Z' }],
});

function recordsWith(options: {
  names: (index: number) => string;
  denied: readonly string[];
  changedAt: string;
  more?: readonly object[];
}): Records {
  const { names, denied, changedAt, more = [] } = options;
  const indexes = Array.from({ length: count }, (_, index) => index);
  const reference = { datasourceId: 'images', objectDefinitionId: 'robot' };
  return {
    organizations: [
      { organizationId, objectImageUrlTemplate: 'https://images.example.com/{objectDefinitionId}' },
    ],
    'api-keys': indexes
      .slice(0, 3)
      .map((index) => ({ organizationId, apiKey: `key-${index}`, role: 'player', userId: user(index) })),
    objects: [{ organizationId, ...reference, url: 'https://images.example.com/robot.png' }],
    collections: indexes.slice(0, 3).map((index) => ({ organizationId, userId: user(index), ...reference })),
    profiles: [
      ...indexes.map((index) => ({
        organizationId,
        userId: user(index),
        username: names(index),
        avatar: index % 3 === 0 ? reference : undefined,
        updatedAt: changedAt,
      })),
      ...more,
    ],
    denylist: denied.map((username) => ({ organizationId, username })),
  };
}

/** Writes records as a source for `migrate`; its folder. */
export async function writeSource(records: Records): Promise<string> {
  const folder = join(await mkdtemp(join(tmpdir(), 'drill-source-')), 'source');
  await mkdir(folder);
  await writeRecords(records, folder);
  return folder;
}

export async function writeRecords(records: Records, folder: string): Promise<void> {
  for (const [entity, rows] of Object.entries(records)) {
    const lines = rows.map((row) => `${JSON.stringify(row)}\n`);
    await writeFile(join(folder, `${entity}.ndjson`), lines.join(''));
  }
}
