import type { Releasers } from '../../lib/releasers.ts';
import type { Log } from '../../log.ts';
import { closeRedis, connectRedis, type ConnectOptions } from './connect.ts';
import { openEmbedded, reachEmbedded, type Embedded } from './embedded.ts';
import { defineScripts, type Store } from '../scripts.ts';
import { readSecrets, type SecretFiles } from './secrets.ts';

/** Where the store is. */
export interface StoreConfig {
  /** Undefined: the embedded Redis under `dataDir`. */
  redisUrl: string | undefined;
  allowEviction: boolean;
  redisSecrets: SecretFiles;
  dataDir: string;
}

/**
 * Opens the store that the configuration names, or else the embedded one, which then lives as long as we do;
 * `redisUrl` is where other processes of the bridge find it.
 */
export async function openStore(
  config: StoreConfig,
  releasers: Releasers,
  log: Log,
): Promise<{ store: Store; redisUrl: string; isEmbedded: boolean }> {
  const embed = (): Promise<Embedded> => openEmbedded({ dataDir: config.dataDir, log });
  const opened = await connect(config, releasers, embed, { log });
  return { ...opened, isEmbedded: config.redisUrl === undefined };
}

/**
 * Reaches the service's store for an operator's tool: the same URL, or the embedded Redis, whether or not the
 * bridge is running. A tool may wait longer for an answer than a request may.
 */
export async function reachStore(config: StoreConfig, releasers: Releasers): Promise<Store> {
  const reach = (): Promise<Embedded> => reachEmbedded(config.dataDir);
  return (await connect(config, releasers, reach, { commandTimeout: 30_000 })).store;
}

async function connect(
  { redisUrl, allowEviction, redisSecrets }: StoreConfig,
  releasers: Releasers,
  embed: () => Promise<Embedded>,
  options: ConnectOptions,
): Promise<{ store: Store; redisUrl: string }> {
  let url = redisUrl;
  if (url === undefined) {
    const embedded = await embed();
    releasers.onClose('embedded Redis', embedded.close);
    url = embedded.url;
  }
  const client = await connectRedis(url, { ...readSecrets(redisSecrets), ...options, allowEviction });
  releasers.onClose('Redis connection', () => closeRedis(client));
  return { store: defineScripts(client), redisUrl: url };
}
