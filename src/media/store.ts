import { randomBytes } from 'node:crypto';
import { repeat } from '../lib/repeat.ts';
import type { Log } from '../log.ts';

/** The four picture formats, by file extension, with their media types. */
export const pictureTypes = {
  jpg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  gif: 'image/gif',
} as const;

export type PictureExtension = keyof typeof pictureTypes;
export type PictureType = (typeof pictureTypes)[PictureExtension];

// 22 characters of base64url are the 16 random bytes of newPictureName.
const ownName = /^[A-Za-z0-9_-]{22}\.(?<extension>jpg|png|webp|gif)$/;

/** A new, unguessable file name (128 random bits) that is never reused, such as `Vq…3w.jpg`. */
export function newPictureName(extension: PictureExtension): string {
  return `${randomBytes(16).toString('base64url')}.${extension}`;
}

/**
 * The media type of a name made by newPictureName; undefined for every other string, so that nothing else
 * (a path, `..`, a NUL) ever reaches a folder or a bucket.
 */
export function pictureTypeOf(name: string): PictureType | undefined {
  const extension = ownName.exec(name)?.groups?.['extension'];
  return extension === undefined ? undefined : pictureTypes[extension as PictureExtension];
}

/**
 * Stores pictures under the immutable names of newPictureName. An unavailable store rejects with a
 * MediaUnavailableError, for a bucket after about 2.5 seconds at most. No file is ever saved partially.
 */
export interface MediaStore {
  /** Resolves once the whole file is durable and readable. A name not made by newPictureName is a TypeError. */
  save: (name: string, bytes: Buffer) => Promise<void>;
  /** Undefined for a name that is unknown or not made by newPictureName. */
  read: (name: string) => Promise<{ bytes: Buffer; type: PictureType } | undefined>;
  /** No error when the file is absent. */
  remove: (name: string) => Promise<void>;
}

/** The folder or bucket failed or did not respond. The message is one line for the operator. */
export class MediaUnavailableError extends Error {
  override readonly name = 'MediaUnavailableError';
}

/** The code of an error, such as ENOSPC, or else its name, such as TimeoutError. */
export function errorCode(error: unknown): string {
  const { code, cause, name } = Object(error) as { code?: unknown; cause?: unknown; name?: unknown };
  if (typeof code === 'string' && code !== '') return code;
  if (cause !== undefined) return errorCode(cause);
  return typeof name === 'string' ? name : 'unknown error';
}

export interface WatchedMedia {
  /** The store, whose failures and successes are observed. */
  media: MediaStore;
  /** Whether pictures can be stored, according to the latest attempt. */
  arePicturesAvailable: () => boolean;
  close: () => Promise<void>;
}

/** How often to test a store that has not been written to in the meantime, in ms. */
const testInterval = 15_000;

/**
 * Watches whether pictures can be stored. A failure marks the store as unavailable, a successful write as available
 * again; a small test file is written if nothing else is. Every change is logged once.
 */
export function watchMedia(store: MediaStore, log: Log, interval = testInterval): WatchedMedia {
  let available = true;
  let hasWritten = false;

  const note = (outcome: boolean, reason?: string): void => {
    if (outcome === available) return;
    available = outcome;
    if (available) log.info('pictures can be stored again');
    else log.error('pictures cannot be stored', { reason });
  };
  const noteFailure = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof MediaUnavailableError) note(false, error.message);
      throw error;
    }
  };
  const media: MediaStore = {
    save: async (name, bytes) => {
      await noteFailure(store.save(name, bytes));
      hasWritten = true;
      note(true);
    },
    read: (name) => noteFailure(store.read(name)),
    remove: (name) => noteFailure(store.remove(name)),
  };

  const test = async (): Promise<void> => {
    const isNeeded = !available || !hasWritten;
    hasWritten = false;
    // The failure has been noted already.
    if (isNeeded) await testWrite(media).catch(() => {});
  };
  const testing = repeat(test, interval);
  return { media, arePicturesAvailable: () => available, close: testing.stop };
}

/** Writes a small file and removes it again; rejects if the store refuses. */
export async function testWrite(store: MediaStore): Promise<void> {
  const name = newPictureName('gif');
  await store.save(name, Buffer.from('GIF89a'));
  await store.remove(name);
}
