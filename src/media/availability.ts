import { repeat } from '../lib/repeat.ts';
import type { Log } from '../log.ts';
import { MediaUnavailableError } from './errors.ts';
import { newPictureName } from './names.ts';
import type { MediaStore } from './store.ts';

export interface WatchedMedia {
  /** The store itself; its failures and successes are noted. */
  media: MediaStore;
  /** Whether pictures can be stored, as far as is known from the latest attempt. */
  arePicturesAvailable: () => boolean;
  close: () => Promise<void>;
}

/** How often to test a store that nobody has written to in the meantime, in ms. */
const testInterval = 15_000;

/**
 * Watches whether pictures can be stored. Any failure marks the store as unavailable and a successful write as
 * available again; while nothing is written, a small test file is. Every change is logged once.
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
    // The failure has been noted.
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
