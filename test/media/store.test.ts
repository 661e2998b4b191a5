import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import S3rver from 's3rver';
import { MediaUnavailableError } from '../../src/media/errors.ts';
import { newPictureName } from '../../src/media/names.ts';
import { createMediaStore } from '../../src/media/open.ts';
import type { MediaStore } from '../../src/media/store.ts';

const aws = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
let folder = '';
let bucket: S3rver;
let endpoint = '';

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'media-'));
  bucket = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory: path.join(folder, 's3'),
    configureBuckets: [{ name: 'pics' }],
  });
  endpoint = `http://127.0.0.1:${(await bucket.run()).port}`;
});

afterAll(async () => {
  await bucket.close();
  await rm(folder, { recursive: true });
});

describe.each([
  ['a folder', async () => createMediaStore('file:', { dataDir: folder })],
  ['a bucket', async () => createMediaStore(`s3://pics?endpoint=${endpoint}`, { dataDir: folder, aws })],
  [
    'a prefix of a bucket',
    async () => createMediaStore(`s3://pics?endpoint=${endpoint}&prefix=a/b`, { dataDir: folder, aws }),
  ],
])('%s', (_, open) => {
  let store: MediaStore;
  beforeAll(async () => {
    store = await open();
  });

  test('gives back the very bytes, with the type its name tells', async () => {
    const name = newPictureName('webp');
    const bytes = Buffer.from(Array.from({ length: 1000 }, (__, n) => n % 256));
    await store.save(name, bytes);
    const found = await store.read(name);
    expect(found?.type).toBe('image/webp');
    expect(found?.bytes.equals(bytes)).toBe(true);
  });

  test('keeps a picture of many megabytes', async () => {
    const name = newPictureName('png');
    await store.save(name, Buffer.alloc(12_000_000, 'pixels'));
    expect((await store.read(name))?.bytes.equals(Buffer.alloc(12_000_000, 'pixels'))).toBe(true);
  });

  test('takes the same picture twice', async () => {
    const name = newPictureName('gif');
    await store.save(name, Buffer.from('same'));
    await store.save(name, Buffer.from('same'));
    expect((await store.read(name))?.bytes.toString()).toBe('same');
  });

  test('knows nothing of a name it was never given', async () => {
    expect(await store.read(newPictureName('jpg'))).toBeUndefined();
  });

  test('removes a picture, and does not mind one that is gone', async () => {
    const name = newPictureName('jpg');
    await store.save(name, Buffer.from('pixels'));
    await store.remove(name);
    expect(await store.read(name)).toBeUndefined();
    await store.remove(name);
  });

  test('saves, reads and removes nothing under a name that is not ours', async () => {
    for (const name of ['../escaped.jpg', '.env', '', `${'a'.repeat(22)}.svg`, `/${newPictureName('jpg')}`]) {
      await expect(store.save(name, Buffer.from('x'))).rejects.toThrow(TypeError);
      expect(await store.read(name)).toBeUndefined();
      await store.remove(name);
    }
  });

  test('keeps many saved at once', async () => {
    const names = Array.from({ length: 30 }, () => newPictureName('png'));
    await Promise.all(names.map(async (name) => store.save(name, Buffer.from(name))));
    const found = await Promise.all(names.map(async (name) => (await store.read(name))?.bytes.toString()));
    expect(found).toEqual(names);
  });
});

const open = async (url: string, credentials: object = aws) =>
  createMediaStore(url, { dataDir: folder, aws: credentials });
const oneLine = (words: string) => new RegExp(`^[^\\n]*${words}[^\\n]*$`);

describe('a bucket that cannot be used is refused at the start, in one line with the remedy:', () => {
  test('no credentials', async () => {
    await expect(open(`s3://pics?endpoint=${endpoint}`, {})).rejects.toThrow(oneLine('AWS_ACCESS_KEY_ID'));
  });

  test('temporary credentials, which cannot be used', async () => {
    await expect(open(`s3://pics?endpoint=${endpoint}`, { ...aws, sessionToken: 't' })).rejects.toThrow(
      oneLine('AWS_SESSION_TOKEN'),
    );
  });

  test('an unknown access key', async () => {
    const unknown = { ...aws, accessKeyId: 'OTHER' };
    await expect(open(`s3://pics?endpoint=${endpoint}`, unknown)).rejects.toThrow(
      oneLine('InvalidAccessKeyId.*access key'),
    );
  });

  test('no such bucket', async () => {
    await expect(open(`s3://other?endpoint=${endpoint}`)).rejects.toThrow(oneLine('NoSuchBucket.*bucket'));
  });

  test('nobody listening', async () => {
    await expect(open('s3://pics?endpoint=http://127.0.0.1:65535')).rejects.toThrow(
      oneLine('ECONNREFUSED.*endpoint'),
    );
  });

  test('an address that is none', async () => {
    await expect(open('ftp://pics')).rejects.toThrow(oneLine('^MEDIA_URL is neither'));
  });
});

test('a bucket that stops answering is told within three seconds, for every deed', async () => {
  let silent = false;
  const server = createServer((request, response) => {
    request.resume();
    if (!silent) response.writeHead(request.method === 'DELETE' ? 204 : 200).end();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  try {
    const { port } = server.address() as AddressInfo;
    const store = await createMediaStore(`s3://pics?endpoint=http://127.0.0.1:${port}`, {
      dataDir: folder,
      aws,
    });
    silent = true;
    const name = newPictureName('jpg');
    const began = Date.now();
    const deeds = [store.save(name, Buffer.from('x')), store.read(name), store.remove(name)];
    for (const deed of deeds) await expect(deed).rejects.toThrow(MediaUnavailableError);
    expect(Date.now() - began).toBeLessThan(3000);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
