import { looseMediaKey, organizationBase, organizationsKey } from './keys.ts';
import type { Store } from './scripts.ts';

/**
 * How long a file may be loose before it is swept, in ms. A profile refuses a file announced more than half as
 * long ago (put_profile.lua), so the sweep never takes one that is about to be put to use.
 */
const sweepAge = 600_000;

/**
 * Announces a picture file before it is written. Until a profile refers to it, it counts as loose; so whatever
 * instant the process dies at, the file is found and removed.
 */
export async function announceMedia(store: Store, base: string, file: string): Promise<void> {
  await store.zadd(looseMediaKey(base), await storeTime(store), file);
}

/** Says that a loose file is gone. */
export async function forgetMedia(store: Store, base: string, file: string): Promise<void> {
  await store.zrem(looseMediaKey(base), file);
}

/** Removes the files that have been loose for too long, in every organization; returns how many. */
export async function sweepLooseMedia(
  store: Store,
  prefix: string,
  remove: (file: string) => Promise<void>,
): Promise<number> {
  const before = (await storeTime(store)) - sweepAge;
  let swept = 0;
  for (const organization of await store.smembers(organizationsKey(prefix))) {
    const base = organizationBase(prefix, organization);
    for (const file of await store.zrangebyscore(looseMediaKey(base), '-inf', before)) {
      await remove(file);
      await forgetMedia(store, base, file);
      swept++;
    }
  }
  return swept;
}

async function storeTime(store: Store): Promise<number> {
  const [seconds, microseconds] = await store.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}
