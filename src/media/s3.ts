import { S3mini, S3ServiceError } from 's3mini';
import { errorCode, MediaUnavailableError } from './errors.ts';
import { newPictureName, pictureTypeOf } from './names.ts';
import type { MediaStore } from './store.ts';
import type { BucketAddress } from './url.ts';

/** From the standard AWS environment variables: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION. */
export interface BucketCredentials {
  accessKeyId?: string | undefined;
  secretAccessKey?: string | undefined;
  sessionToken?: string | undefined;
  region?: string | undefined;
}

/** What the environment has of them. */
export function readBucketCredentials(env: NodeJS.ProcessEnv): BucketCredentials {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION } = env;
  return {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN,
    region: AWS_REGION,
  };
}

// With the decoding before it, a bucket that does not answer is still told as such in time.
const requestMilliseconds = 2500;

/** Leaves the content length to fetch: given by the caller too, it is sent twice, which newer HTTP clients refuse. */
const fetchCounting: typeof fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  headers.delete('Content-Length');
  return fetch(input, { ...init, headers });
};

function reason(error: unknown): string {
  if (!(error instanceof S3ServiceError)) return errorCode(error);
  return error.serviceCode === undefined || error.serviceCode === 'Unknown'
    ? `status ${error.status}`
    : error.serviceCode;
}

/**
 * A bucket of any S3-compatible service, addressed by path. Proves by a small object, written and removed
 * again, that it can be used, which needs no right but those the store needs (put, get, delete); rejects with
 * one line and the remedy when it cannot.
 */
export async function openBucket(
  address: BucketAddress,
  credentials: BucketCredentials,
): Promise<MediaStore> {
  const { accessKeyId = '', secretAccessKey = '', sessionToken = '' } = credentials;
  if (accessKeyId === '' || secretAccessKey === '')
    throw new Error('MEDIA_URL names a bucket; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY as well.');
  if (sessionToken !== '')
    throw new Error(
      'AWS_SESSION_TOKEN is set, but temporary credentials cannot be used; give an access key that has no session token.',
    );

  const s3 = new S3mini({
    accessKeyId,
    secretAccessKey,
    endpoint: `${address.endpoint}/${address.bucket}`,
    region: address.region,
    requestAbortTimeout: requestMilliseconds,
    fetch: fetchCounting,
  });
  const where = `the bucket ${address.bucket} at ${address.endpoint}`;
  const key = (name: string): string => `${address.prefix}${name}`;
  const reach = async <T>(deed: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw new MediaUnavailableError(`Cannot ${deed} ${where} (${reason(error)}).`, { cause: error });
    }
  };

  const store: MediaStore = {
    save: async (name, bytes) => {
      const type = pictureTypeOf(name);
      if (type === undefined) throw new TypeError('not the name of a picture');
      await reach('write to', async () => s3.putObject(key(name), bytes, type));
    },
    read: async (name) => {
      const type = pictureTypeOf(name);
      if (type === undefined) return undefined;
      const found = await reach('read from', async () => s3.getObjectArrayBuffer(key(name)));
      return found === null ? undefined : { bytes: Buffer.from(found), type };
    },
    remove: async (name) => {
      if (pictureTypeOf(name) === undefined) return;
      await reach('remove from', async () => {
        try {
          await s3.deleteObject(key(name));
        } catch (error) {
          // Amazon's own answer is 204 for an absent key, but not every service's.
          if (!(error instanceof S3ServiceError && error.serviceCode === 'NoSuchKey')) throw error;
        }
      });
    },
  };

  try {
    const proof = newPictureName('gif');
    await store.save(proof, Buffer.from('GIF89a'));
    await store.remove(proof);
  } catch (error) {
    throw new Error(
      `MEDIA_URL: ${error instanceof MediaUnavailableError ? error.message : String(error)} Check the bucket's name, endpoint and region, and that the access key may put, get and delete there.`,
      { cause: error },
    );
  }
  return store;
}
