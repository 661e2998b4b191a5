import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defaultSettings } from './domain/settings.ts';
import { createApiKey, type NewApiKey } from './redis/operator/api-keys.ts';
import { apiKeyKey, hashApiKey, organizationBase } from './redis/keys.ts';
import { findSettings, saveSettings } from './redis/organizations.ts';
import type { RedisClient } from './redis/connection/client.ts';

/** The content of demo-keys.json, which scripts read. */
export interface DemoKeys {
  organizationId: string;
  playerKey: string;
  adminKey: string;
}

/**
 * Returns the keys of the demo organization, which are kept in DATA_DIR/demo-keys.json. The first start creates the
 * organization and its keys. Used with the embedded Redis only.
 */
export async function openDemo(store: RedisClient, keyPrefix: string, dataDir: string): Promise<DemoKeys> {
  const file = join(dataDir, 'demo-keys.json');
  const kept = await readKeys(file);
  const organizationId = 'demo';
  const known = (await findSettings(store, keyPrefix, organizationId)) !== undefined;
  const base = organizationBase(keyPrefix, organizationId);
  if (kept !== undefined && known) {
    // Redis may have been restored from a backup without them. Keys that were revoked are still there.
    const records = [kept.playerKey, kept.adminKey].map((key) => apiKeyKey(base, hashApiKey(key)));
    if ((await store.exists(...records)) === records.length) return kept;
  }

  if (!known) await saveSettings(store, keyPrefix, organizationId, defaultSettings);
  const createKey = async (key: NewApiKey): Promise<string> => (await createApiKey(store, base, key)).apiKey;
  const keys: DemoKeys = {
    organizationId,
    playerKey: await createKey({ role: 'player', userId: 'demo-player', client: 'demo' }),
    adminKey: await createKey({ role: 'admin', client: 'demo' }),
  };
  await mkdir(dataDir, { recursive: true });
  // Renamed into place: a crash must not leave half a file, since the keys cannot be read back from Redis.
  await writeFile(`${file}.new`, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return keys;
}

/** Undefined if the file is missing or unreadable, such as empty after a power failure. */
async function readKeys(file: string): Promise<DemoKeys | undefined> {
  try {
    const keys = JSON.parse(await readFile(file, 'utf8')) as Partial<DemoKeys> | null;
    return keys?.playerKey && keys.adminKey ? (keys as DemoKeys) : undefined;
  } catch {
    return undefined;
  }
}

/** Example commands with the demo keys, ready to paste. */
export function describeDemo(
  keys: DemoKeys,
  baseUrl: string,
  adminUrl: string | undefined,
  organizationHeader: string,
): string {
  const headers = (key: string): string =>
    `-H 'x-api-key: ${key}' -H '${organizationHeader}: ${keys.organizationId}'`;
  return `
Profile Bridge is running at ${baseUrl} with a demo organization. Try:

  curl -i -X PUT ${baseUrl}/api/profile/ ${headers(keys.playerKey)} \\
    -H 'content-type: application/json' -d '{"username":"ada"}'

  curl -i ${baseUrl}/api/profile/ ${headers(keys.playerKey)}

  curl -i -X POST ${baseUrl}/api/profile/username/deny/ ${headers(keys.adminKey)} \\
    -H 'content-type: application/json' -d '{"ada":"player-1"}'

Documentation: ${baseUrl}/docs/${adminUrl === undefined ? '' : `\nDashboard:     ${adminUrl}/`}
`;
}
