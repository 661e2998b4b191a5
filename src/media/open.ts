import type { BucketCredentials } from './s3.ts';
import { openFolder, type MediaStore } from './store.ts';
import { readMediaUrl } from './url.ts';

/**
 * Opens the picture store that MEDIA_URL names (see readMediaUrl) after a test write. Rejects with one line that says
 * what to do if it cannot be used. The S3 client is loaded only for a bucket.
 */
export async function openMediaStore(
  mediaUrl: string | undefined,
  { dataDir, aws = {} }: { dataDir: string; aws?: BucketCredentials },
): Promise<MediaStore> {
  const address = readMediaUrl(mediaUrl, { dataDir, region: aws.region });
  if (address.kind === 'folder') return openFolder(address.folder);
  const { openBucket } = await import('./s3.ts');
  return openBucket(address, aws);
}
