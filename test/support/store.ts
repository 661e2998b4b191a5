import { connectRedis } from '../../src/redis/connection/connect.ts';
import { defineScripts, type Store } from '../../src/redis/scripts.ts';
import { testRedisUrl } from './redis.ts';

/** A client of the run's Redis that knows the scripts. The caller closes it by `closeRedis`. */
export async function openTestStore(url = testRedisUrl()): Promise<Store> {
  // A test may send thousands of commands at once, on a machine that has other work.
  return defineScripts(await connectRedis(url, { allowEviction: true, commandTimeout: 10_000 }));
}
