import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { collectGarbage } from '../support/garbage.ts';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MediaUnavailableError, newPictureName, readWhole, type MediaStore } from '../../src/media/store.ts';
import { openMediaStore } from '../../src/media/open.ts';
import { patiently } from './patiently.ts';
import { describeWithS3, s3Credentials, startS3, type S3Service } from './swift.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'media-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Opens a store whose operations are tried again where the machine is too slow for their time limit. */
async function open(url: string, credentials: object = s3Credentials): Promise<MediaStore> {
  const store = await patiently(() => openOnce(url, credentials));
  return {
    save: (name, bytes) => patiently(() => store.save(name, bytes)),
    open: (name, most) => patiently(() => store.open(name, most)),
    remove: (name) => patiently(() => store.remove(name)),
  };
}

const openOnce = (url: string, credentials: object = s3Credentials) =>
  openMediaStore(url, { dataDir: folder, aws: credentials });

describe('a folder', () => keepsPictures(() => open('file:')));

describeWithS3('a bucket', () => {
  let s3: S3Service;
  const bucket = (parameters = ''): string => `s3://pics?endpoint=${s3.endpoint}${parameters}`;
  beforeAll(async () => {
    s3 = await startS3(path.join(folder, 's3'));
    await s3.createBucket('pics');
  });
  afterAll(() => s3.stop());

  describe('as a whole', () => keepsPictures(() => open(bucket())));
  describe('by a prefix', () => keepsPictures(() => open(bucket('&prefix=a/b'))));
  describe('with temporary credentials', () =>
    keepsPictures(() => open(bucket(), { ...s3Credentials, sessionToken: 'token' })));

  describe('that cannot be used is refused when it is opened, in one line with the remedy:', () => {
    test('half of the credentials', async () => {
      await expect(open(bucket(), { accessKeyId: 'test:tester' })).rejects.toThrow(
        oneLine('AWS_SECRET_ACCESS_KEY must be set together'),
      );
    });

    test('an unknown access key', async () => {
      await expect(open(bucket(), { ...s3Credentials, accessKeyId: 'test:other' })).rejects.toThrow(
        oneLine('SignatureDoesNotMatch.*AWS_ACCESS_KEY_ID'),
      );
    });

    test('a wrong secret', async () => {
      await expect(open(bucket(), { ...s3Credentials, secretAccessKey: 'guess' })).rejects.toThrow(
        oneLine('SignatureDoesNotMatch.*AWS_SECRET_ACCESS_KEY'),
      );
    });

    test('no such bucket', async () => {
      await expect(open(`s3://other?endpoint=${s3.endpoint}`)).rejects.toThrow(
        oneLine('NoSuchBucket.*bucket'),
      );
    });
  });
});

test('an endpoint where nothing listens is refused when it is opened, in one line with the remedy', async () => {
  await expect(open('s3://pics?endpoint=http://127.0.0.1:1')).rejects.toThrow(oneLine('Check .* endpoint'));
});

test('an address that is neither a folder nor a bucket is refused', async () => {
  await expect(open('ftp://pics')).rejects.toThrow(oneLine('^MEDIA_URL is neither'));
});

function oneLine(words: string): RegExp {
  return new RegExp(`^[^\\n]*${words}[^\\n]*$`);
}

/** What holds for every store. */
function keepsPictures(openStore: () => Promise<MediaStore>): void {
  let store: MediaStore;
  beforeAll(async () => {
    store = await openStore();
  });

  test('returns the saved bytes, with the type of the name', async () => {
    const name = newPictureName('webp');
    const bytes = Buffer.from(Array.from({ length: 1000 }, (__, n) => n % 256));
    await store.save(name, bytes);
    const found = await readWhole(store, name);
    expect(found?.type).toBe('image/webp');
    expect(found?.bytes.equals(bytes)).toBe(true);
  });

  test('stores a picture of many megabytes', async () => {
    const name = newPictureName('png');
    await store.save(name, Buffer.alloc(12_000_000, 'pixels'));
    expect((await readWhole(store, name))?.bytes.equals(Buffer.alloc(12_000_000, 'pixels'))).toBe(true);
  });

  test('returns parts, with the size of the whole', async () => {
    const name = newPictureName('png');
    await store.save(name, Buffer.from('many pixels'));
    const picture = await store.open(name, 4);
    expect([picture?.size, picture?.bytes.toString()]).toEqual([11, 'many']);
    expect((await picture?.readFrom(5, 3))?.toString()).toBe('pix');
    expect((await picture?.readFrom(5, 100))?.toString()).toBe('pixels');
    await picture?.close();
  });

  test('accepts the same picture twice', async () => {
    const name = newPictureName('gif');
    await store.save(name, Buffer.from('same'));
    await store.save(name, Buffer.from('same'));
    expect((await readWhole(store, name))?.bytes.toString()).toBe('same');
  });

  test('finds nothing under an unknown name', async () => {
    expect(await readWhole(store, newPictureName('jpg'))).toBeUndefined();
  });

  test('removes a picture, and ignores one that is gone', async () => {
    const name = newPictureName('jpg');
    await store.save(name, Buffer.from('pixels'));
    await store.remove(name);
    expect(await readWhole(store, name)).toBeUndefined();
    await store.remove(name);
  });

  test('saves, reads and removes nothing under a name of another form', async () => {
    for (const name of ['../escaped.jpg', '.env', '', `${'a'.repeat(22)}.svg`, `/${newPictureName('jpg')}`]) {
      await expect(store.save(name, Buffer.from('x'))).rejects.toThrow(TypeError);
      expect(await readWhole(store, name)).toBeUndefined();
      await store.remove(name);
    }
  });

  test('stores many pictures at once', async () => {
    const names = Array.from({ length: 10 }, () => newPictureName('png'));
    await Promise.all(names.map(async (name) => store.save(name, Buffer.from(name))));
    const found = await Promise.all(
      names.map(async (name) => (await readWhole(store, name))?.bytes.toString()),
    );
    expect(found).toEqual(names);
  });
}

/** Does some work with a bucket whose service answers so, given its address. */
async function inBucket(answer: RequestListener, work: (url: string) => Promise<void>): Promise<void> {
  const server = createServer((request, response) => {
    request.resume();
    answer(request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await work(`s3://pics?endpoint=http://127.0.0.1:${port}`).finally(() => {
    server.closeAllConnections();
    server.close();
  });
}

test('a bucket that stops responding fails every operation instead of hanging', async () => {
  let silent = false;
  const answer: RequestListener = ({ method }, response) => {
    if (!silent) response.writeHead(method === 'DELETE' ? 204 : 200).end();
  };
  await inBucket(answer, async (url) => {
    const store = await openOnce(url);
    silent = true;
    const name = newPictureName('jpg');
    const operations = [store.save(name, Buffer.from('x')), store.open(name, 1), store.remove(name)];
    for (const operation of operations) await expect(operation).rejects.toThrow(MediaUnavailableError);
  });
});

test('a bucket that says 404 without an error code has no such picture, and takes none if it does not exist', async () => {
  const objects = new Set<string>();
  let exists = true;
  const answer: RequestListener = ({ method, url = '' }, response) => {
    if (method === 'PUT' && exists) objects.add(url);
    if (method === 'DELETE') objects.delete(url);
    response.writeHead(objects.has(url) ? 200 : method === 'DELETE' ? 204 : 404).end();
  };
  await inBucket(answer, async (url) => {
    const store = await open(url);
    expect(await store.open(newPictureName('jpg'), 1)).toBeUndefined();
    exists = false;
    await expect(openOnce(url)).rejects.toThrow('Cannot write to the bucket pics');
  });
});

test('a bucket keeps nothing in memory of a picture that was read', async () => {
  const mebibyte = 1 << 20;
  const picture = Buffer.alloc(mebibyte);
  const answer: RequestListener = ({ method }, response) => {
    if (method === 'GET') response.end(picture);
    else response.writeHead(method === 'DELETE' ? 204 : 200).end();
  };
  await inBucket(answer, async (url) => {
    const store = await openOnce(url);
    const before = process.memoryUsage().arrayBuffers;
    for (let reads = 0; reads < 50; reads++) await readWhole(store, newPictureName('jpg'));
    // What connections and streams still hold goes in the next turns of the event loop.
    for (let turns = 0; turns < 20; turns++) {
      collectGarbage();
      await nextTurn();
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(15 * mebibyte);
  });
});
