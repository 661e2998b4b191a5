import type { Config } from '../config.ts';
import type { Lifetime } from '../lifetime.ts';
import type { Log } from '../log.ts';
import { closeRedis, connectRedis } from './connect.ts';
import { openEmbedded } from './embedded.ts';
import { defineScripts, type Store } from './scripts.ts';

/** Opens the store that the configuration names, or else the embedded one, which then lives as long as we do. */
export async function openStore(
  { redisUrl, allowEviction, dataDir }: Pick<Config, 'redisUrl' | 'allowEviction' | 'dataDir'>,
  lifetime: Lifetime,
  log: Log,
): Promise<{ store: Store; isEmbedded: boolean }> {
  let url = redisUrl;
  if (url === undefined) {
    const embedded = await openEmbedded({ dataDir, log });
    lifetime.onClose('embedded Redis', embedded.close);
    url = embedded.url;
  }
  const client = await connectRedis(url, { log, allowEviction });
  lifetime.onClose('Redis connection', () => closeRedis(client));
  return { store: defineScripts(client), isEmbedded: redisUrl === undefined };
}
