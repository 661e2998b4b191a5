import { orphanGraceMs } from '../domain/profile.ts';
import { repeat } from '../lib/repeat.ts';
import type { Log } from '../log.ts';
import { storeTime, type RedisClient } from '../redis/connection/client.ts';
import { unreferencedPicturesKey } from '../redis/keys.ts';
import { MediaUnavailableError, newPictureName, testWrite, type MediaStore } from './store.ts';
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
      await untrack(store, base, file);
    } catch (error) {
      log?.warn('a picture file could not be removed and is left to the sweep', {
        file,
        reason: String(error),
      });
    }
  };
  return {
    discard,
    /**
     * Decodes a picture and stores it as pending since `at` (ms). If it throws, it leaves no file behind. No `sender`,
     * named within its organization, can keep the pictures of others from being decoded.
     */
    store: async (base: string, sender: string, bytes: Buffer, at: number): Promise<StoredPicture> => {
      const picture = await decodePicture(bytes, base + sender);
      if (picture.kind !== 'picture') return picture;
      const file = newPictureName(picture.extension);
      await trackPending(store, base, file, at);
      try {
        await media.save(file, picture.bytes);
      } catch (error) {
        await discard(base, file);
        throw error;
      }
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

async function untrack(store: RedisClient, base: string, file: string): Promise<void> {
  await store.zrem(unreferencedPicturesKey(base), file);
}

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
  for (const file of await store.zrangebyscore(key, '-inf', before)) {
    if (signal?.aborted === true) return;
    try {
      await remove(file);
      await untrack(store, base, file);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/**
 * Watches whether pictures can be stored: a failure marks the media store as unavailable, a successful write as
 * available again. If nothing else is written in an interval (ms), a small test file is. Every change is logged once.
 */
export function watchMedia(unwatched: MediaStore, log: Log, interval = 15_000) {
  let available = true;
  let hasWritten = false;

  const note = (outcome: boolean, reason?: string): void => {
    if (outcome === available) return;
    available = outcome;
    if (available) log.info('pictures can be stored again');
    else log.error('pictures cannot be stored', { reason });
  };
  const noteFailure = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      if (error instanceof MediaUnavailableError) note(false, error.message);
      throw error;
    });
  const media: MediaStore = {
    save: async (name, bytes) => {
      await noteFailure(unwatched.save(name, bytes));
      hasWritten = true;
      note(true);
    },
    open: (name, most) => noteFailure(unwatched.open(name, most)),
    remove: (name) => noteFailure(unwatched.remove(name)),
  };

  const test = async (): Promise<void> => {
    const isNeeded = !available || !hasWritten;
    hasWritten = false;
    // The failure has been noted already.
    if (isNeeded) await testWrite(media).catch(() => {});
  };
  return {
    /** The media store, whose failures and successes are observed. */
    media,
    /** Whether pictures can be stored, according to the latest attempt. */
    arePicturesAvailable: (): boolean => available,
    close: repeat(test, interval),
  };
}
