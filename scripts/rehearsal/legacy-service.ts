import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startLegacy, type Legacy } from '../../test/support/legacy/legacy.ts';
import { objectImageUrlTemplate } from './changes.ts';

export const organizationId = 'rehearsal';
export const adminKey = 'admin-key-of-the-rehearsal';

export interface Player {
  userId: string;
  apiKey: string;
}

/** The legacy service with its players, and its data as the migration reads it. */
export type LegacyService = Awaited<ReturnType<typeof startLegacyService>>;

/** Starts the stand-in for the legacy service with this many players, who have a name each, and one administrator. */
export async function startLegacyService(count: number) {
  const legacy: Legacy = await startLegacy({ recording: false });
  const organization = legacy.organization(organizationId);
  const players = Array.from({ length: count }, (_, n): Player => {
    const player = { userId: `user-${n}`, apiKey: `key-of-user-${n}` };
    legacy.addKey(player.apiKey, { organization: organizationId, role: 'player', user: player.userId });
    organization.save(player.userId, { username: `player-${n}` });
    return player;
  });
  legacy.addKey(adminKey, { organization: organizationId, role: 'admin' });
  return {
    url: legacy.url,
    organization,
    players,
    /** Writes all data, as of one moment, as a source of `migrate`; returns the folder and that moment (ISO 8601). */
    dump: async (folder: string): Promise<{ folder: string; asOf: string }> => {
      const asOf = new Date().toISOString();
      const files: Record<string, object[]> = {
        organizations: [{ objectImageUrlTemplate }],
        'api-keys': [
          { apiKey: adminKey, role: 'admin' },
          ...players.map(({ apiKey, userId }) => ({ apiKey, userId, role: 'player' })),
        ],
        profiles: Array.from(organization.profiles, ([userId, profile]) => ({
          userId,
          ...profile,
          updatedAt: organization.changedAt.get(userId),
        })),
        denylist: Array.from(organization.denied, (username) => ({ username })),
      };
      await mkdir(folder, { recursive: true });
      for (const [entity, records] of Object.entries(files)) {
        const lines = records.map((record) => `${JSON.stringify({ organizationId, ...record })}\n`);
        await writeFile(join(folder, `${entity}.ndjson`), lines.join(''));
      }
      return { folder, asOf };
    },
    close: legacy.close,
  };
}
