import { orphanGraceMs } from '../domain/profile.ts';
import { forEachConcurrently } from '../lib/collections/for-each-concurrently.ts';
import type { Log } from '../log.ts';
import { storeTime, type RedisClient } from '../redis/connection/client.ts';
import { unreferencedPicturesKey } from '../redis/keys.ts';
import { newPictureName, type MediaStore } from './store.ts';
import { decodePicture, type DecodedPicture } from './picture.ts';

/*
 * The life of a picture file. It is *pending* from before it is written until a profile refers to it (profile/put.lua),
 * then *referenced*, then *orphaned* once that profile has another picture. Pending and orphaned files are listed in
 * Redis with the time they became so, and swept after a grace period (domain/profile.ts), also if the process dies.
 */

export type StoredPicture = { kind: 'stored'; file: string } | Exclude<DecodedPicture, { kind: 'picture' }>;

/** Stores and removes the picture files of profiles. */
export type Pictures = ReturnType<typeof createPictures>;

export function createPictures(store: RedisClient, media: MediaStore, log?: Log) {
  /** Removes a file that no profile refers to, or leaves it to the sweep if that fails. */
  const discard = async (base: string, file: string): Promise<void> => {
    try {
      await media.remove(file);
    } catch (error) {
      log?.warn('a picture file could not be removed and is left to the sweep', {
        file,
        reason: String(error),
      });
      return;
    }
    // Otherwise the sweep takes it off the list.
    await store.zrem(unreferencedPicturesKey(base), file).catch(() => {});
  };
  return {
    discard,
    /**
     * Decodes a picture and stores it as pending since `at` (ms). If that fails, a late write may still take effect: the
     * file stays listed, and the sweep removes it. `sender` is named within its organization: none can hold up the
     * decoding of others' pictures.
     */
    store: async (base: string, sender: string, bytes: Buffer, at: number): Promise<StoredPicture> => {
      const picture = await decodePicture(bytes, base + sender);
      if (picture.kind !== 'picture') return picture;
      const file = newPictureName(picture.extension);
      await trackPending(store, base, file, at);
      await media.save(file, picture.bytes);
      return { kind: 'stored', file };
    },
  };
}

/** Lists a file as pending since `at` (ms, by the clock of Redis). To be called before the file is written. */
export async function trackPending(
  store: RedisClient,
  base: string,
  file: string,
  at: number,
): Promise<void> {
  await store.zadd(unreferencedPicturesKey(base), at, file);
}

const listedAtOnce = 1000;
/** Most of the time is spent waiting for the store of pictures. */
const removedAtOnce = 16;

/**
 * Removes an organization's files that have been pending or orphaned for longer than their grace period. Rejects at the
 * end if some could not be removed. Ends early on `signal`.
 */
export async function removeOrphans(
  store: RedisClient,
  base: string,
  remove: (file: string) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const key = unreferencedPicturesKey(base);
  if ((await store.exists(key)) === 0) return;
  const before = (await storeTime(store)) - orphanGraceMs;
  const failures: unknown[] = [];
  for (let isMore = true; isMore;) {
    if (signal?.aborted === true) return;
    // Those that could not be removed come first.
    const files = await store.zrangebyscore(key, '-inf', before, 'LIMIT', failures.length, listedAtOnce);
    isMore = files.length === listedAtOnce;
    await forEachConcurrently(files, removedAtOnce, async (file) => {
      if (signal?.aborted === true) return;
      try {
        await remove(file);
        await store.zrem(key, file);
      } catch (error) {
        failures.push(error);
      }
    });
  }
  if (failures.length > 0) throw failures[0];
}
