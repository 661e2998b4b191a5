import { repeat } from '../lib/repeat.ts';
import type { Log } from '../log.ts';
import { MediaUnavailableError, newPictureName, testStore, type MediaStore } from './store.ts';

/**
 * Watches whether pictures can be stored: a write that fails marks the media store as unavailable, one that succeeds as
 * available again. If nothing is written in an interval (ms), a small test file is. Every change is logged once.
 */
export function watchMedia(unwatched: MediaStore, log: Log, interval = 15_000) {
  // Always the same one: where it cannot be removed, no others pile up.
  const testFile = newPictureName('gif');
  let available = true;
  let hasWritten = false;

  const note = (reason?: string): void => {
    if (available === (reason === undefined)) return;
    available = reason === undefined;
    if (available) log.info('pictures can be stored again');
    else log.error('pictures cannot be stored', { reason });
  };
  const watched = async (write: Promise<void>): Promise<void> => {
    try {
      await write;
      note();
    } catch (error) {
      if (error instanceof MediaUnavailableError) note(error.message);
      throw error;
    }
  };

  const test = async (): Promise<void> => {
    const isNeeded = !available || !hasWritten;
    hasWritten = false;
    if (!isNeeded) return;
    // The failure has been noted already.
    await watched(testStore(unwatched, testFile)).catch(() => {});
    await unwatched.remove(testFile).catch(() => {});
  };
  return {
    /** The media store, whose writes are observed. */
    media: {
      ...unwatched,
      save: async (name: string, bytes: Buffer) => {
        await watched(unwatched.save(name, bytes));
        hasWritten = true;
      },
    } satisfies MediaStore,
    /** Whether pictures can be stored, according to the latest attempt. */
    arePicturesAvailable: (): boolean => available,
    close: repeat(test, interval),
  };
}
