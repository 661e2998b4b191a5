import { connectRedis } from '../../src/redis/connection/connect.ts';
import { testRedisUrl } from './redis.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';

/** A client of the run's Redis that knows the scripts. The caller closes it by `closeRedis`. */
export async function openTestStore(url = testRedisUrl()): Promise<RedisClient> {
  // A test may send thousands of commands at once, on a machine that has other work.
  return await connectRedis(url, { allowEviction: true, commandTimeout: 10_000 });
}
