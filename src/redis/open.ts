import type { Releasers } from '../lib/releasers.ts';
import { repeat } from '../lib/repeat.ts';
import type { Log } from '../log.ts';
import type { RedisClient } from './connection/client.ts';
import { closeRedis, connectRedis, type ConnectOptions } from './connection/connect.ts';
import { openEmbedded } from './connection/embedded.ts';
import { layoutFault, readLayout } from './layout.ts';
import { checkPermissions } from './connection/permissions.ts';
import { waitForReplicas } from './connection/script-loader.ts';

/** Where the store is. */
export interface StoreConfig {
  /** Undefined: the embedded Redis under `dataDir`. */
  redisUrl: string | undefined;
  allowEviction: boolean;
  /** What should not be in a URL. */
  redisSecrets: Pick<ConnectOptions, 'tls' | 'password'>;
  dataDir: string;
  keyPrefix: string;
  /** How many replicas a write waits for. */
  writeReplicas: number;
  /** How long the service waits for Redis, if not as connectRedis says. */
  redisTimeouts?: Pick<ConnectOptions, 'commandTimeout' | 'startTimeout'>;
}

/** Opens the configured store, or else the embedded one; `redisUrl` is where other processes of the bridge find it. */
export async function openStore(
  config: StoreConfig,
  releasers: Releasers,
  log: Log,
): Promise<{ store: RedisClient; redisUrl: string }> {
  const opened = await connect(config, releasers, { log, ...config.redisTimeouts });
  watchLayout(opened, config.keyPrefix, releasers, log);
  return opened;
}

/** Opens the same store for an operator's tool, whether or not the bridge is running; rejects with the reason of `signal`. */
export async function openStoreForTool(
  config: StoreConfig,
  releasers: Releasers,
  options: { anyLayout?: boolean; signal?: AbortSignal } = {},
): Promise<RedisClient> {
  const forTools = { commandTimeout: 30_000, joins: true };
  return (await connect(config, releasers, { ...forTools, ...options })).store;
}

interface Opened {
  store: RedisClient;
  redisUrl: string;
  /** The store's connection, and the one that waits for replicas. */
  clients: readonly RedisClient[];
}

async function connect(
  { redisUrl, dataDir, allowEviction, redisSecrets, keyPrefix, writeReplicas }: StoreConfig,
  releasers: Releasers,
  { joins, anyLayout = false, log, ...options }: ConnectOptions & { joins?: boolean; anyLayout?: boolean },
): Promise<Opened> {
  let url = redisUrl;
  if (url === undefined) {
    const embedded = await openEmbedded({ dataDir, joins, log });
    releasers.onClose('embedded Redis', embedded.close);
    url = embedded.url;
  }
  const clients: RedisClient[] = [];
  const open = async (to?: Log): Promise<RedisClient> => {
    const client = await connectRedis(url, { ...redisSecrets, ...options, allowEviction, log: to });
    releasers.onClose('Redis connection', () => closeRedis(client));
    clients.push(client);
    return client;
  };
  const store = await open(log);
  await checkPermissions(store, keyPrefix);
  const fault = anyLayout ? undefined : layoutFault(await readLayout(store, keyPrefix));
  if (fault !== undefined) throw new Error(fault);
  if (writeReplicas > 0) {
    waitForReplicas(store, { connection: await open(), count: writeReplicas });
  }
  return { store, redisUrl: url, clients };
}

const layoutCheckMs = 3000;

/** Stops using the store once a newer version has changed its layout, or begun to: every request is 503. */
function watchLayout({ store, clients }: Opened, prefix: string, releasers: Releasers, log: Log): void {
  const check = async (): Promise<void> => {
    // A store that is unavailable is reported elsewhere.
    const layout = await readLayout(store, prefix).catch(() => undefined);
    // An empty store may have lost its data; the next write records the layout.
    const fault = layout === undefined || layout.kind === 'older' ? undefined : layoutFault(layout);
    if (fault === undefined) return;
    log.error('the store is no longer used', { reason: fault });
    for (const client of clients) client.disconnect();
  };
  releasers.onClose('layout check', repeat(check, layoutCheckMs));
}
