import { randomBytes } from 'node:crypto';
import { open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeDirectory } from '../lib/files/make-directory.ts';

/** The four picture formats, by file extension, with their media types. */
const pictureTypes = {
  jpg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  gif: 'image/gif',
} as const;

export type PictureExtension = keyof typeof pictureTypes;
type PictureType = (typeof pictureTypes)[PictureExtension];

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

/** An open picture, of which the first bytes have been read. It must be closed. */
export interface OpenPicture {
  type: PictureType;
  /** The size of the whole picture, in bytes. */
  size: number;
  /** The first bytes. */
  bytes: Buffer;
  /**
   * Reads at most `maxBytes`, from the byte `from` on. A picture that was removed meanwhile can still be read from a
   * folder; from a bucket, the result is undefined.
   */
  readFrom: (from: number, maxBytes: number) => Promise<Buffer | undefined>;
  close: () => Promise<void>;
}

/** Stores pictures. An unavailable store rejects with a MediaUnavailableError, within about 2.5 seconds. */
export interface MediaStore {
  /** Saves the whole file durably, or nothing. A name not made by newPictureName is a TypeError. */
  save: (name: string, bytes: Buffer) => Promise<void>;
  /** Reads at most `maxBytes`. Undefined for a name that is unknown or not made by newPictureName. */
  open: (name: string, maxBytes: number) => Promise<OpenPicture | undefined>;
  /** Removes a picture; one that does not exist is no error. */
  remove: (name: string) => Promise<void>;
}

/** Reads a whole picture; undefined where `open` is. */
export async function readWhole(store: Pick<MediaStore, 'open'>, name: string) {
  const picture = await store.open(name, Infinity);
  await picture?.close();
  return picture && { type: picture.type, bytes: picture.bytes };
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

/** The time limit of an operation with all its retries, in ms: together with decoding, a request stays below 3 s. */
const operationTimeout = 2500;

/** The result of an operation; rejects with a TimeoutError if there is none in time, and then aborts the signal. */
export async function inTime<T>(
  operation: (signal: AbortSignal) => Promise<T>,
  timeout = operationTimeout,
): Promise<T> {
  const ended = new AbortController();
  try {
    const late = sleep(timeout, undefined, { signal: ended.signal }).then(() => {
      throw new DOMException('no response in time', 'TimeoutError');
    });
    return await Promise.race([operation(ended.signal), late]);
  } finally {
    // The timer would keep the result until the time limit.
    ended.abort();
  }
}

/** Writes a small file and reads it; rejects if the store refuses. */
export async function testStore(store: MediaStore, name: string): Promise<void> {
  await store.save(name, Buffer.from('GIF89a'));
  await readWhole(store, name);
}

/** The name of a file that is being saved. */
const temporaryName = /^\.[A-Za-z0-9_.-]+\.tmp$/;
/** How old such a file is once it is certainly a leftover, in ms. Another instance may be saving a younger one. */
const leftoverAfter = 60_000;

/**
 * How many operations on a folder run at once. A network file system may leave them without an answer, and each holds a
 * thread meanwhile: of the four that Node.js has, decoding and name lookups must keep one.
 */
const maxAtOnce = 3;

/** Runs operations on a folder in turn, each within the time limit, its turn included. */
function createFolderQueue(timeout: number) {
  let running = 0;
  const waiting = new Set<() => void>();
  const enter = async (signal: AbortSignal): Promise<void> => {
    if (running === maxAtOnce) {
      await new Promise<void>((resolve, reject) => {
        waiting.add(resolve);
        signal.addEventListener('abort', () => waiting.delete(resolve) && reject(signal.reason as Error));
      });
    } else running += 1;
  };
  const leave = (): void => {
    const [next] = waiting;
    if (next === undefined) running -= 1;
    else waiting.delete(next);
    next?.();
  };
  return async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    await inTime(async (signal) => {
      await enter(signal);
      return await work(signal).finally(leave);
    }, timeout);
}

/**
 * Opens a folder of pictures, created if missing. Rejects with one line and the remedy if it cannot be written. `timeout`
 * is the time limit of an operation, in ms.
 */
export async function openFolder(folder: string, timeout = operationTimeout): Promise<MediaStore> {
  const inTurn = createFolderQueue(timeout);
  const reach = <T>(verb: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    inTurn(work).catch((error: unknown) => {
      const message = `Cannot ${verb} the media folder ${folder} (${errorCode(error)}).`;
      throw new MediaUnavailableError(message, { cause: error });
    });

  const store: MediaStore = {
    save: async (name, bytes) => {
      if (pictureTypeOf(name) === undefined) throw new TypeError('not the name of a picture');
      await reach('write to', () => writeWhole(folder, name, bytes));
    },
    open: async (name, most) => {
      const type = pictureTypeOf(name);
      if (type === undefined) return undefined;
      const found = await reach('read from', (signal) => openFile(path.join(folder, name), most, signal));
      if (found === undefined) return undefined;
      const { readFrom } = found;
      return { ...found, type, readFrom: (from, length) => reach('read from', () => readFrom(from, length)) };
    },
    remove: async (name) => {
      if (pictureTypeOf(name) === undefined) return;
      await reach('remove from', async () => {
        // A killed save may have left it behind.
        await rm(temporaryPath(folder, name), { force: true });
        await rm(path.join(folder, name), { force: true });
      });
    },
  };

  try {
    makeDirectory(folder);
    await removeLeftovers(folder);
    const testFile = newPictureName('gif');
    await testStore(store, testFile);
    await store.remove(testFile);
  } catch (error) {
    throw new Error(
      `MEDIA_URL: the folder ${folder} cannot be written (${errorCode(error)}); let the service's user write there, or set MEDIA_URL to another folder.`,
      { cause: error },
    );
  }
  return store;
}

/** Where a file is written before it is renamed. */
function temporaryPath(folder: string, name: string): string {
  return path.join(folder, `.${name}.tmp`);
}

/** Writes a file atomically and durably: it appears under its name complete, or not at all. */
async function writeWhole(folder: string, name: string, bytes: Buffer): Promise<void> {
  const file = temporaryPath(folder, name);
  try {
    await writeFile(file, bytes, { flag: 'wx', flush: true });
    await rename(file, path.join(folder, name));
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    await rm(file, { force: true }).catch(() => {});
    throw error;
  }
}

/** Opens a file and reads its first bytes; undefined if there is none, or if nobody waits for it any more. */
async function openFile(file: string, most: number, signal: AbortSignal) {
  const handle = await open(file, 'r').catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  try {
    const { size } = await handle.stat();
    const readFrom = async (from: number, length: number): Promise<Buffer> => {
      const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - from)));
      // A single read may bring less than was asked for, as from a network file system.
      for (let at = 0; at < bytes.length;) {
        const { bytesRead } = await handle.read(bytes, at, bytes.length - at, from + at);
        if (bytesRead === 0) return bytes.subarray(0, at);
        at += bytesRead;
      }
      return bytes;
    };
    const bytes = await readFrom(0, most);
    if (!signal.aborted) return { size, bytes, readFrom, close: () => handle.close() };
    await handle.close();
    return undefined;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Removes the files that killed saves have left behind. */
async function removeLeftovers(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => temporaryName.test(name));
  for (const name of names) {
    const file = path.join(folder, name);
    const written = await stat(file).catch(() => undefined);
    if (written !== undefined && Date.now() - written.mtimeMs > leftoverAfter)
      await rm(file, { force: true });
  }
}
