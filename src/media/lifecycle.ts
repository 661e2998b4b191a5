import { setTimeout as sleep } from 'node:timers/promises';
import { orphanGraceMs } from '../domain/profile.ts';
import type { Log } from '../log.ts';
import type { RedisClient } from '../redis/connection/client.ts';
import { organizationBase, organizationsKey, sweepKey, unreferencedPicturesKey } from '../redis/keys.ts';
import { scanMembers } from '../redis/connection/scan.ts';
import { newPictureName } from './names.ts';
import { decodePicture, type DecodedPicture } from './picture.ts';
import type { MediaStore } from './store.ts';

/*
 * The life of a picture file. It is *pending* from before it is written until a profile refers to it (profile/put.lua),
 * then *referenced*, then *orphaned* once that profile has another picture. Pending and orphaned files are listed in
 * Redis with the time they became so; the sweep removes those that stay there for too long. So whenever the process
 * dies, a file that no profile refers to is found and removed. The grace periods are in domain/profile.ts.
 */

export type StoredPicture = { kind: 'stored'; file: string } | Exclude<DecodedPicture, { kind: 'picture' }>;

export interface Pictures {
  /** Decodes an uploaded picture and stores it as pending. Where it throws, no file is left behind. */
  store: (base: string, bytes: Buffer) => Promise<StoredPicture>;
  /** Removes a file that no profile refers to. A failure is logged, and the file left to the sweep. */
  discard: (base: string, file: string) => Promise<void>;
}

export function createPictures(store: RedisClient, media: MediaStore, log: Log): Pictures {
  const discard = async (base: string, file: string): Promise<void> => {
    try {
      await media.remove(file);
      await untrack(store, base, file);
    } catch (error) {
      log.warn('a picture file could not be removed and is left to the sweep', {
        file,
        reason: String(error),
      });
    }
  };
  return {
    discard,
    store: async (base, bytes) => {
      const picture = await decodePicture(bytes);
      if (picture.kind !== 'picture') return picture;
      const file = newPictureName(picture.extension);
      await trackPending(store, base, file);
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

/** Lists a file as pending, which must happen before it is written. */
export async function trackPending(store: RedisClient, base: string, file: string): Promise<void> {
  await store.zadd(unreferencedPicturesKey(base), await storeTime(store), file);
}

/** Takes a removed file off the list. */
export async function untrack(store: RedisClient, base: string, file: string): Promise<void> {
  await store.zrem(unreferencedPicturesKey(base), file);
}

/** How often there is a sweep, in ms, by whichever process comes first. */
const sweepEveryMs = 600_000;
/** Organizations asked at once. */
const atOnce = 50;
/** How long requests have the process to themselves before the next organizations are asked, in ms. */
const pauseMs = 5;

/**
 * Removes the files that have been pending or orphaned for longer than their grace period, in every organization, and
 * returns how many; unless any process began a sweep less than ten minutes ago. Organizations are asked a few at a
 * time and with pauses, so that no request waits for a sweep. A file that cannot be removed does not keep others
 * from it: the sweep goes on, rejects at the end, and the next one tries again. Ends early on `signal`.
 */
export async function sweepOrphans(
  store: RedisClient,
  prefix: string,
  remove: (file: string) => Promise<void>,
  signal?: AbortSignal,
): Promise<number> {
  if ((await store.set(sweepKey(prefix), '', 'PX', sweepEveryMs, 'NX')) === null) return 0;
  const before = (await storeTime(store)) - orphanGraceMs;
  let swept = 0;
  const failures: unknown[] = [];
  const sweepFile = async (base: string, file: string): Promise<void> => {
    try {
      await remove(file);
      await untrack(store, base, file);
      swept++;
    } catch (error) {
      failures.push(error);
    }
  };
  const sweepOrganization = async (organization: string): Promise<void> => {
    const base = organizationBase(prefix, organization);
    const key = unreferencedPicturesKey(base);
    const files = await store.zrangebyscore(key, '-inf', before).catch((error: unknown) => {
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
      if (organizations.length > atOnce) await sleep(pauseMs);
    }
  }
  if (failures.length > 0) throw failures[0];
  return swept;
}

async function storeTime(store: RedisClient): Promise<number> {
  const [seconds, microseconds] = await store.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}
