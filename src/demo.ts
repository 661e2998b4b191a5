import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defaultSettings } from './domain/settings.ts';
import { createApiKey, type NewApiKey } from './redis/api-keys.ts';
import { organizationBase } from './redis/keys.ts';
import { findSettings, saveSettings } from './redis/organizations.ts';
import type { Store } from './redis/scripts.ts';

/** The file's shape is relied on from outside. */
export interface DemoKeys {
  organizationId: string;
  playerKey: string;
  adminKey: string;
}

/**
 * The demo organization's keys, kept in DATA_DIR/demo-keys.json; on the first start the organization and the keys
 * are made. Only for the embedded store: whoever names a store has organizations of his own.
 */
export async function openDemo(store: Store, keyPrefix: string, dataDir: string): Promise<DemoKeys> {
  const file = join(dataDir, 'demo-keys.json');
  const kept = await readFile(file, 'utf8').catch(() => undefined);
  const organizationId = 'demo';
  const known = (await findSettings(store, keyPrefix, organizationId)) !== undefined;
  if (kept !== undefined && known) return JSON.parse(kept) as DemoKeys;

  await saveSettings(store, keyPrefix, organizationId, defaultSettings);
  const base = organizationBase(keyPrefix, organizationId);
  const make = async (key: NewApiKey): Promise<string> => {
    const made = await createApiKey(store, base, key);
    if (made.kind !== 'created') throw new Error('the demo organization is gone');
    return made.apiKey;
  };
  const keys: DemoKeys = {
    organizationId,
    playerKey: await make({ role: 'player', userId: 'demo-player', client: 'demo' }),
    adminKey: await make({ role: 'admin', client: 'demo' }),
  };
  await mkdir(dataDir, { recursive: true });
  // Renamed into place: a file cut short by a crash would lock people out of the demo for good.
  await writeFile(`${file}.new`, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return keys;
}

/** The demo's keys as lines to paste. */
export function describeDemo(
  keys: DemoKeys,
  baseUrl: string,
  adminUrl: string | undefined,
  organizationHeader: string,
): string {
  const headers = (key: string): string =>
    `-H 'x-api-key: ${key}' -H '${organizationHeader}: ${keys.organizationId}'`;
  return `
Profile Bridge answers at ${baseUrl}, with a demo organization. Try:

  curl -i -X PUT ${baseUrl}/api/profile/ ${headers(keys.playerKey)} \\
    -H 'content-type: application/json' -d '{"username":"ada"}'

  curl -i ${baseUrl}/api/profile/ ${headers(keys.playerKey)}

  curl -i -X POST ${baseUrl}/api/profile/username/deny/ ${headers(keys.adminKey)} \\
    -H 'content-type: application/json' -d '{"ada":"player-1"}'

The documentation is at ${baseUrl}/docs/${adminUrl === undefined ? '' : `, and who calls is shown at ${adminUrl}/`}.
`;
}
