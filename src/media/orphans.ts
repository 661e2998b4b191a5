import { setTimeout as sleep } from 'node:timers/promises';
import { looseMediaKey, organizationBase, organizationsKey, sweepKey } from '../redis/keys.ts';
import { scanMembers } from '../redis/scan.ts';
import type { Store } from '../redis/scripts.ts';

/**
 * How long a file may be loose before it is swept, in ms. A profile refuses a file announced more than half as
 * long ago (lua/profile/put.lua), so the sweep never takes one that is about to be put to use.
 */
const sweepAge = 600_000;
/** How often there is a sweep, in ms, by whichever process comes first. */
const sweepEvery = 600_000;
/** Organizations asked at once. */
const atOnce = 50;
/** How long those that wait have the process for themselves before the next are asked, in ms. */
const pause = 5;

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

/**
 * Removes the files that have been loose for too long, in every organization, and returns how many; unless a sweep,
 * by whichever process, was begun less than ten minutes ago. Organizations are asked a few at a time and with
 * pauses, so that no request waits for a sweep, however many they are. What cannot be removed keeps nothing else
 * from it, but rejects at the end, and is tried again by the next sweep. Ends early on `signal`.
 */
export async function sweepLooseMedia(
  store: Store,
  prefix: string,
  remove: (file: string) => Promise<void>,
  signal?: AbortSignal,
): Promise<number> {
  if ((await store.set(sweepKey(prefix), '', 'PX', sweepEvery, 'NX')) === null) return 0;
  const before = (await storeTime(store)) - sweepAge;
  let swept = 0;
  const failures: unknown[] = [];
  const sweepFile = async (base: string, file: string): Promise<void> => {
    try {
      await remove(file);
      await forgetMedia(store, base, file);
      swept++;
    } catch (error) {
      failures.push(error);
    }
  };
  const sweepOrganization = async (organization: string): Promise<void> => {
    const base = organizationBase(prefix, organization);
    const files = await store.zrangebyscore(looseMediaKey(base), '-inf', before).catch((error: unknown) => {
      failures.push(error);
      return [];
    });
    for (const file of files) {
      if (signal?.aborted) return;
      await sweepFile(base, file);
    }
  };
  for await (const organizations of scanMembers(store, organizationsKey(prefix))) {
    for (let first = 0; first < organizations.length; first += atOnce) {
      await Promise.all(organizations.slice(first, first + atOnce).map(sweepOrganization));
      if (signal?.aborted) return swept;
      if (organizations.length > atOnce) await sleep(pause);
    }
  }
  if (failures.length > 0) throw failures[0];
  return swept;
}

async function storeTime(store: Store): Promise<number> {
  const [seconds, microseconds] = await store.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}
