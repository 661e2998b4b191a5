import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assemble, type Bridge } from '../../src/assemble.ts';
import { readConfig, type Config } from '../../src/config.ts';
import { defaultSettings, type OrganizationSettings } from '../../src/domain/settings.ts';
import { createLog, type Log } from '../../src/log.ts';
import { createApiKey, type NewApiKey } from '../../src/redis/operator/api-keys.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { organizationBase } from '../../src/redis/keys.ts';
import { saveSettings } from '../../src/redis/organizations.ts';
import { createClient, type Client } from './requests/client.ts';
import { freshPrefix, testRedisUrl } from './redis.ts';
import { openTestStore, patient } from './store.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';
import type { StoreConfig } from '../../src/redis/open.ts';

export { openTestStore } from './store.ts';

export interface TestBridge extends Bridge {
  config: Config;
  /** A connection of the test's own to the same store. */
  store: RedisClient;
  /** Makes an organization nobody else uses. */
  newOrganization: (settings?: Partial<OrganizationSettings>, id?: string) => Promise<TestOrganization>;
  /** The picture files on disk. */
  mediaFolder: string;
}

export interface TestOrganization {
  id: string;
  base: string;
  newKey: (key: NewApiKey) => Promise<{ apiKey: string; keyId: string }>;
  /** A client with a new player key for this user. */
  player: (userId: string) => Promise<Client>;
  /** A client with a new admin key. */
  admin: () => Promise<Client>;
}

/** What a test sets of the configuration. */
export type Overrides = Partial<Config> & Pick<StoreConfig, 'redisTimeouts'>;

let organizations = 0;

/**
 * Starts the whole bridge in this process, on the run's Redis and a port and key prefix of its own. It waits for Redis
 * and the legacy service as long as it takes, unless a test sets its own limits.
 */
export async function startBridge(overrides: Overrides = {}, log?: Log): Promise<TestBridge> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bridge-'));
  const config: Config & Overrides = {
    ...readConfig({
      REDIS_URL: testRedisUrl(),
      KEY_PREFIX: freshPrefix(),
      PORT: '0',
      ADMIN_PORT: '0',
      DATA_DIR: dataDir,
    }),
    logLevel: 'error',
    legacyTimeout: 30_000,
    redisTimeouts: patient,
    ...overrides,
  };
  const bridge = await assemble(config, log ?? createLog(config.logLevel));
  const store = await openTestStore(config.redisUrl);

  return {
    ...bridge,
    config,
    store,
    mediaFolder: join(dataDir, 'media'),
    newOrganization: async (settings, id = `org-${organizations++}`) =>
      await createTestOrganization(bridge.url, config, store, id, settings),
    close: async () => {
      await bridge.close();
      await closeRedis(store);
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Makes an organization by this very id, with clients for the bridge at `url`. */
export async function createTestOrganization(
  url: string,
  { keyPrefix, organizationHeader }: Pick<Config, 'keyPrefix' | 'organizationHeader'>,
  store: RedisClient,
  id: string,
  settings: Partial<OrganizationSettings> = {},
): Promise<TestOrganization> {
  const base = organizationBase(keyPrefix, id);
  await saveSettings(store, keyPrefix, id, { ...defaultSettings, ...settings });
  // A new organization has no index to rebuild.
  await store.hset(`${base}settings`, 'comparison', settings.comparison ?? defaultSettings.comparison);
  const newKey: TestOrganization['newKey'] = (key) => createApiKey(store, base, key);
  const client = (apiKey: string): Client =>
    createClient(url, { organization: id, apiKey, organizationHeader });
  return {
    id,
    base,
    newKey,
    player: async (userId) => client((await newKey({ role: 'player', userId })).apiKey),
    admin: async () => client((await newKey({ role: 'admin' })).apiKey),
  };
}
