import { setTimeout as sleep } from 'node:timers/promises';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { storeTime, type RedisClient } from '../../redis/connection/client.ts';
import { scanKeys } from '../../redis/connection/scan.ts';
import { readCutover } from '../switch/registry.ts';
import { legacyPicturesDueKey, legacyPicturesKey, profileKey } from '../../redis/keys.ts';

/** How often legacy pictures are counted, in ms, by whichever process comes first; longer where that takes long. */
const countEvery = 10 * 60_000;
const timesItsDuration = 50;
/** After this time a count has ended or its process has died, in ms. */
const countTimeout = 60 * 60_000;
/** How many profiles are read at once, and for how long only requests are served before the next ones, in ms. */
const atOnce = 500;
const pauseMs = 50;

/**
 * How many profiles show a picture at the URL that it had in the legacy service's data, and when that was counted last
 * (ms since 1970, by the store's clock); undefined where it never was.
 */
export async function readLegacyPictures(store: RedisClient, prefix: string) {
  const [count, at] = (await store.get(legacyPicturesKey(prefix)))?.split(' ') ?? [];
  return count === undefined ? undefined : { count: Number(count), at: Number(at) };
}

/**
 * Counts them again, unless another process has begun to recently: slowly, some 10,000 profiles a second. In shadow they
 * are not counted, since most of them have not been brought over yet, nor where no mode was ever set.
 */
export async function countLegacyPictures(
  store: RedisClient,
  prefix: string,
  signal: AbortSignal,
): Promise<void> {
  const { mode, isStored } = await readCutover(store, prefix);
  if (!isStored || mode === 'shadow') return;
  const due = legacyPicturesDueKey(prefix);
  if ((await store.set(due, '', 'PX', countTimeout, 'NX')) === null) return;
  const startedAt = performance.now();
  try {
    let count = 0;
    for await (const keys of scanKeys(store, `${prefix}{`)) {
      for await (const chunk of yieldingChunks(keys.filter(isProfile), atOnce)) {
        const profiles = await Promise.all(chunk.map((key) => store.hmget(key, 'pu', 'pf', 'pr')));
        count += profiles.filter(([url, file, reference]) => url && !file && !reference).length;
        await sleep(pauseMs, undefined, { signal });
      }
    }
    await store.set(legacyPicturesKey(prefix), `${count} ${await storeTime(store)}`);
    const next = Math.max(countEvery, timesItsDuration * (performance.now() - startedAt));
    await store.set(due, '', 'PX', Math.round(next));
  } catch (error) {
    await store.del(due).catch(() => {});
    throw error;
  }
}

/** Makes the next check count them again, as after a migration has copied some. */
export async function recountLegacyPictures(store: RedisClient, prefix: string): Promise<void> {
  await store.del(legacyPicturesDueKey(prefix));
}

/** What the key of a profile begins with, after the organization's base. */
const profileStart = profileKey('', '');

function isProfile(key: string): boolean {
  return key.startsWith(profileStart, key.indexOf('}:') + 2);
}
