import { connectRedis } from '../../src/redis/connection/connect.ts';
import { testRedisUrl } from './redis.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';
import { scanKeys } from '../../src/redis/connection/scan.ts';

/** For tests of anything but these limits: only a hang takes so long, on the slowest machine too. */
export const patient = { commandTimeout: 60_000, startTimeout: 60_000 };

/** A client of the run's Redis that knows the scripts. The caller closes it by `closeRedis`. */
export async function openTestStore(url = testRedisUrl()): Promise<RedisClient> {
  return await connectRedis(url, { allowEviction: true, ...patient });
}

/**
 * A client whose calls are made by `onCall`: it gets the command and its arguments, and `make`, which makes the call, on
 * another client if that is given.
 */
export function interceptCalls(
  store: RedisClient,
  onCall: (make: (on?: RedisClient) => Promise<unknown>, command: string, args: unknown[]) => unknown,
): RedisClient {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown =>
        onCall((on = target) => Reflect.apply(value, on, args) as Promise<unknown>, String(name), args);
    },
  });
}

/** All keys that begin with a prefix, on whichever server of a cluster, sorted. */
export async function keysOf(store: RedisClient, prefix: string): Promise<string[]> {
  const found = new Set<string>();
  for await (const keys of scanKeys(store, prefix)) for (const key of keys) found.add(key);
  return [...found].sort();
}
