import type { PictureType } from './names.ts';

/**
 * Keeps pictures under the immutable names of newPictureName. A store out of reach rejects with a
 * MediaUnavailableError, in about 2.5 seconds at most for a bucket; nothing is half-saved.
 */
export interface MediaStore {
  /** Resolves once the whole file is durable and readable. Any name not of newPictureName is a TypeError. */
  save: (name: string, bytes: Buffer) => Promise<void>;
  /** Undefined for a name that is unknown or not ours. */
  read: (name: string) => Promise<{ bytes: Buffer; type: PictureType } | undefined>;
  /** No error when the file is absent. */
  remove: (name: string) => Promise<void>;
}
