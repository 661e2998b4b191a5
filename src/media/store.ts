import { openFolder } from './disk.ts';
import type { PictureType } from './names.ts';
import { openBucket, type BucketCredentials } from './s3.ts';
import { readMediaUrl } from './url.ts';

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

/**
 * Opens the store that MEDIA_URL names (see readMediaUrl) and proves that it can be written. Rejects with
 * one line and the remedy for an address it cannot use.
 */
export async function createMediaStore(
  mediaUrl: string | undefined,
  { dataDir, aws = {} }: { dataDir: string; aws?: BucketCredentials },
): Promise<MediaStore> {
  const address = readMediaUrl(mediaUrl, { dataDir, region: aws.region });
  if (address.kind === 'wrong') throw new Error(`MEDIA_URL ${address.reason}.`);
  return address.kind === 'folder' ? openFolder(address.folder) : openBucket(address, aws);
}
