import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { cutoverKey } from '../../../src/redis/keys.ts';
import type { Mode } from '../../../src/cutover/modes.ts';
import { startLegacy, type Legacy } from './legacy.ts';
import { freshPrefix } from '../redis.ts';
import {
  openTestStore,
  startBridge,
  type Overrides,
  type TestBridge,
  type TestOrganization,
} from '../bridge.ts';

export interface LegacyBridge {
  bridge: TestBridge;
  legacy: Legacy;
  /** An organization that both services know. */
  organization: TestOrganization;
  /** A key of this user that both services accept. */
  player: (userId: string) => Promise<string>;
  /** An admin key that both services accept. */
  admin: () => Promise<string>;
  /** Sends a request to the bridge, with an API key. */
  send: (
    apiKey: string,
    method: string,
    path: string,
    init?: { body?: string | FormData; headers?: Record<string, string> },
  ) => Promise<Response>;
  close: () => Promise<void>;
}

/** Starts a bridge in front of a legacy service that nobody else uses; the mode is shadow, or else as given. */
export async function startLegacyBridge(
  overrides: Overrides = {},
  legacyOptions: Parameters<typeof startLegacy>[0] = {},
  mode: Mode = 'shadow',
): Promise<LegacyBridge> {
  const legacy = await startLegacy(legacyOptions);
  const keyPrefix = freshPrefix();
  if (mode !== 'shadow') await storeMode(overrides.redisUrl, keyPrefix, mode);
  const bridge = await startBridge({ legacyBaseUrl: legacy.url, keyPrefix, ...overrides });
  const organization = await bridge.newOrganization();
  const newKey = async (role: 'player' | 'admin', userId?: string): Promise<string> => {
    const { apiKey } = await organization.newKey({ role, userId });
    legacy.addKey(apiKey, {
      organization: organization.id,
      role,
      ...(userId !== undefined && { user: userId }),
    });
    return apiKey;
  };
  return {
    bridge,
    legacy,
    organization,
    player: (userId) => newKey('player', userId),
    admin: () => newKey('admin'),
    send: (apiKey, method, path, init = {}) =>
      fetch(bridge.url + path, {
        method,
        ...init,
        headers: { 'x-api-key': apiKey, 'x-platform-organization-id': organization.id, ...init.headers },
      }),
    close: async () => {
      await bridge.close();
      await legacy.close();
    },
  };
}

/** As a switch leaves it. */
async function storeMode(redisUrl: string | undefined, keyPrefix: string, mode: Mode): Promise<void> {
  const store = await openTestStore(redisUrl);
  await store.hset(cutoverKey(keyPrefix), { mode, epoch: 1, since: Date.now(), by: 'test' });
  await closeRedis(store);
}
