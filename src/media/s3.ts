import {
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import {
  errorCode,
  inTime,
  MediaUnavailableError,
  newPictureName,
  pictureTypeOf,
  testStore,
  type MediaStore,
} from './store.ts';
import type { BucketAddress } from './url.ts';

/** The values of the standard variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION. */
export interface BucketCredentials {
  accessKeyId?: string | undefined;
  secretAccessKey?: string | undefined;
  sessionToken?: string | undefined;
  region?: string | undefined;
}

/** How long to wait for a connection before it is tried again, in ms. */
const connectionTimeout = 1000;

/** Runs an operation within the time limit; undefined if there is no such object. */
async function run<T>(
  { bucket, endpoint }: BucketAddress,
  verb: string,
  operation: (options: { abortSignal: AbortSignal }) => Promise<T>,
): Promise<T | undefined> {
  try {
    // The signal ends requests, but not the SDK's search for credentials.
    return await inTime((abortSignal) => operation({ abortSignal }));
  } catch (error) {
    if (error instanceof S3ServiceException && error.name === 'NoSuchKey') return undefined;
    throw new MediaUnavailableError(
      `Cannot ${verb} the bucket ${bucket} at ${endpoint} (${errorCode(error)}).`,
      { cause: error },
    );
  }
}

/** Whether there is no such object by the status alone: not every service has an error code in the body. */
function isMissing({ cause }: MediaUnavailableError): boolean {
  return cause instanceof S3ServiceException && cause.name === 'NotFound';
}

function isForbidden({ cause }: MediaUnavailableError): boolean {
  return cause instanceof S3ServiceException && cause.$metadata.httpStatusCode === 403;
}

/**
 * Opens a bucket of any S3-compatible service, addressed by path. Without an access key the SDK's default sources apply,
 * such as roles and profiles. Rejects with one line and the remedy if a test object cannot be written, read and removed;
 * nothing else is checked, since the access key needs permissions for pictures only (get, put, delete).
 */
export async function openBucket(
  address: BucketAddress,
  { accessKeyId = '', secretAccessKey = '', sessionToken }: BucketCredentials,
): Promise<MediaStore> {
  const { bucket, endpoint, region, prefix } = address;
  if ((accessKeyId === '') !== (secretAccessKey === '')) {
    throw new Error('MEDIA_URL: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set together.');
  }
  const s3 = new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    requestHandler: { connectionTimeout },
    // Services other than Amazon's often lack the checksums that the SDK adds by default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(accessKeyId !== '' && {
      credentials: { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
    }),
  });

  const objectOf = (name: string) => ({ Bucket: bucket, Key: `${prefix}${name}` });
  // Amazon's answer for a missing object is 403 unless the access key may list the bucket.
  let hidesMissing = false;
  const readPart = async (name: string, from: number, most: number) => {
    const range = most < Infinity ? { Range: `bytes=${from}-${from + most - 1}` } : {};
    return await run(address, 'read from', async (options) => {
      const found = await s3.send(new GetObjectCommand({ ...objectOf(name), ...range }), options);
      const bytes = Buffer.from((await found.Body?.transformToByteArray()) ?? []);
      // Such as "bytes 0-99/1234".
      return { size: Number(found.ContentRange?.split('/')[1] ?? bytes.length), bytes };
    }).catch((error: MediaUnavailableError) => {
      if (isMissing(error) || (hidesMissing && isForbidden(error))) return undefined;
      throw error;
    });
  };

  const store: MediaStore = {
    save: async (name, bytes) => {
      const type = pictureTypeOf(name);
      if (type === undefined) throw new TypeError('not the name of a picture');
      const object = new PutObjectCommand({ ...objectOf(name), Body: bytes, ContentType: type });
      await run(address, 'write to', (options) => s3.send(object, options));
    },
    open: async (name, most) => {
      const type = pictureTypeOf(name);
      if (type === undefined) return undefined;
      const found = await readPart(name, 0, most);
      const readFrom = async (from: number, length: number) => (await readPart(name, from, length))?.bytes;
      return found && { ...found, type, readFrom, close: async () => {} };
    },
    remove: async (name) => {
      if (pictureTypeOf(name) === undefined) return;
      await run(address, 'remove from', (options) =>
        s3.send(new DeleteObjectCommand(objectOf(name)), options),
      );
    },
  };

  try {
    const testFile = newPictureName('gif');
    await testStore(store, testFile);
    await store.remove(testFile);
    await store
      .open(testFile, 1)
      .catch((error: MediaUnavailableError) => (hidesMissing = isForbidden(error)));
  } catch (error) {
    throw new Error(
      `MEDIA_URL: ${error instanceof MediaUnavailableError ? error.message : String(error)} Check the bucket's name, endpoint and region, and that AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or a role) allow getting, putting and deleting objects there.`,
      { cause: error },
    );
  }
  return store;
}
