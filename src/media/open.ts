import { openFolder } from './disk.ts';
import { openBucket, type BucketCredentials } from './s3.ts';
import type { MediaStore } from './store.ts';
import { readMediaUrl } from './url.ts';

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
