import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { get, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import express, { type ErrorRequestHandler } from 'express';
import { MediaUnavailableError, newPictureName, type MediaStore } from '../../src/media/store.ts';
import { serveMedia } from '../../src/api/media.ts';
import { openMediaStore } from '../../src/media/open.ts';
import { until } from '../support/until.ts';

const name = newPictureName('png');
const pixels = Buffer.from('not really pixels, but nobody looks');
let folder = '';
let store: MediaStore;
let server: Server;
let base = '';

const away = async () => Promise.reject(new MediaUnavailableError('away'));
/** Where the reads of a large picture began. */
const reads: number[] = [];
const largeSize = 50_000_000;
const openLarge: MediaStore['open'] = async (_name, most) => {
  const readFrom = async (from: number, length: number): Promise<Buffer> => {
    reads.push(from);
    return Promise.resolve(Buffer.alloc(Math.min(length, largeSize - from)));
  };
  const close = async (): Promise<void> => Promise.resolve();
  return { bytes: await readFrom(0, most), size: largeSize, type: 'image/png' as const, readFrom, close };
};
let openPictures = 0;
const openCounted: MediaStore['open'] = async (file, most) => {
  const picture = await store.open(file, most);
  if (picture === undefined) return undefined;
  openPictures++;
  const close = async (): Promise<void> => {
    openPictures--;
    await picture.close();
  };
  return { ...picture, close };
};
const onError: ErrorRequestHandler = (error, _request, response, _next) => {
  response.status(error instanceof MediaUnavailableError ? 503 : 400).end();
};

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'media-serve-'));
  store = await openMediaStore(`file://${folder}`, { dataDir: folder });
  await store.save(name, pixels);
  const app = express();
  app.get('/media/:file', serveMedia(store));
  app.get('/away/:file', serveMedia({ ...store, open: away }));
  app.get('/counted/:file', serveMedia({ ...store, open: openCounted }));
  app.get('/large/:file', serveMedia({ ...store, open: openLarge }));
  app.use((_request, response) => {
    response.status(404).send('problem');
  });
  app.use(onError);
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

const harmless = {
  'cache-control': 'public, max-age=31536000, immutable',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'cross-origin',
};

test('a picture comes with its bytes, its type, and headers that make it immutable and harmless', async () => {
  const response = await fetch(`${base}/media/${name}`);
  expect(response.status).toBe(200);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    ...harmless,
    'content-type': 'image/png',
    'content-length': String(pixels.length),
    'content-disposition': 'inline',
    etag: `"${name}"`,
  });
  expect(Buffer.from(await response.arrayBuffer()).equals(pixels)).toBe(true);
});

test('HEAD answers the same headers without the bytes', async () => {
  const response = await fetch(`${base}/media/${name}`, { method: 'HEAD' });
  expect(response.status).toBe(200);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    ...harmless,
    'content-type': 'image/png',
    'content-length': String(pixels.length),
  });
  expect((await response.arrayBuffer()).byteLength).toBe(0);
});

test.each([`"${name}"`, `W/"${name}"`, `"other", "${name}"`, '*'])(
  'If-None-Match: %s is answered 304',
  async (tag) => {
    const response = await fetch(`${base}/media/${name}`, { headers: { 'if-none-match': tag } });
    expect(response.status).toBe(304);
    expect(Object.fromEntries(response.headers)).toMatchObject({ ...harmless, etag: `"${name}"` });
    expect((await response.arrayBuffer()).byteLength).toBe(0);
  },
);

test('If-None-Match with another tag is answered with the picture', async () => {
  const response = await fetch(`${base}/media/${name}`, { headers: { 'if-none-match': '"other"' } });
  expect(response.status).toBe(200);
});

test('a removed picture is 404, even for clients that have its tag', async () => {
  const removed = newPictureName('jpg');
  await store.save(removed, pixels);
  await store.remove(removed);
  const response = await fetch(`${base}/media/${removed}`, { headers: { 'if-none-match': `"${removed}"` } });
  expect(response.status).toBe(404);
});

/** Unlike fetch, sends the path as it is. */
async function statusOf(rawPath: string): Promise<number | undefined> {
  const [response] = (await once(get(base, { path: rawPath }), 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

test.each([
  'unknown.png',
  newPictureName('png'),
  name.replace('.png', '.jpg'),
  name.toUpperCase(),
  `${name}%00`,
  `..%2F${name}`,
  '..%2f..%2f..%2fetc%2fpasswd',
  '%2e%2e',
  '../package.json',
  '.writable.tmp',
])('/media/%s is left to the next handler', async (file) => {
  expect(await statusOf(`/media/${file}`)).toBe(404);
});

test('the error of an unavailable store is passed on, for the app to answer 503', async () => {
  expect(await statusOf(`/away/${name}`)).toBe(503);
});

test('a client that does not read has a part of one picture in memory, however many it has requested', async () => {
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const socket = connect(Number(new URL(base).port), '127.0.0.1');
  socket.write(`GET /large/${name} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(4));
  await once(socket, 'readable');
  const [peer] = await accepted;
  await until(() => peer.writableNeedDrain);
  await fetch(`${base}/media/${name}`);
  expect(reads.filter((from) => from === 0)).toHaveLength(1);
  expect(Math.max(...reads)).toBeLessThan(largeSize / 2);

  let received = 0;
  socket.on('data', (chunk) => (received += chunk.length));
  await until(() => received > 4 * largeSize);
  expect(reads.filter((from) => from === 0)).toHaveLength(4);
  socket.destroy();
});

test('a picture that is removed while a client reads it is still sent in full', async () => {
  const removed = newPictureName('png');
  const bytes = randomBytes(20_000_000);
  await store.save(removed, bytes);
  const response = await fetch(`${base}/media/${removed}`);
  await store.remove(removed);
  expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
});

test('a picture is closed once it was sent, or its client has left', async () => {
  const large = newPictureName('png');
  await store.save(large, randomBytes(20_000_000));
  await (await fetch(`${base}/counted/${large}`)).arrayBuffer();
  await until(() => openPictures === 0);
  const leaving = new AbortController();
  await fetch(`${base}/counted/${large}`, { signal: leaving.signal });
  expect(openPictures).toBe(1);
  leaving.abort();
  await until(() => openPictures === 0);
});

describe('a range of a picture', () => {
  const size = pixels.length;

  test.each([
    ['bytes=0-3', 'not ', `bytes 0-3/${size}`],
    ['bytes=30-', 'looks', `bytes 30-${size - 1}/${size}`],
    ['bytes=-5', 'looks', `bytes ${size - 5}-${size - 1}/${size}`],
    ['bytes=-999', pixels.toString(), `bytes 0-${size - 1}/${size}`],
    ['bytes=30-999', 'looks', `bytes 30-${size - 1}/${size}`],
  ])('%s is answered with 206', async (range, text, contentRange) => {
    const response = await fetch(`${base}/media/${name}`, { headers: { range } });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(contentRange);
    expect(response.headers.get('content-type')).toBe('image/png');
    expect(await response.text()).toBe(text);
  });

  test.each([0, 1, 262_143, 262_144, 262_145, 600_000])(
    'from byte %i on of a large picture',
    async (start) => {
      const large = newPictureName('webp');
      const bytes = randomBytes(700_000);
      await store.save(large, bytes);
      for (const end of [start, 262_143, 262_144, 524_287, 699_999].filter((last) => last >= start)) {
        const headers = { range: `bytes=${start}-${end}` };
        const response = await fetch(`${base}/media/${large}`, { headers });
        expect(Buffer.from(await response.arrayBuffer()).equals(bytes.subarray(start, end + 1))).toBe(true);
      }
      const whole = await fetch(`${base}/media/${large}`);
      expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true);
    },
  );

  test.each([
    ['beyond its end', 'bytes=999-'],
    ['of its last 0 bytes', 'bytes=-0'],
  ])('%s is answered with 416, which no cache may keep in place of the picture', async (_what, range) => {
    const response = await fetch(`${base}/media/${name}`, { headers: { range } });
    expect([response.status, response.headers.get('content-range')]).toEqual([416, `bytes */${size}`]);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('content-type')).toBeNull();
  });

  test.each([
    ['several ranges', { range: 'bytes=0-1,5-6' }],
    ['another unit', { range: 'lines=1-2' }],
    ['a malformed range', { range: 'bytes=x' }],
    ['a range of another version', { range: 'bytes=0-3', 'if-range': '"other"' }],
    ['a range since a date', { range: 'bytes=0-3', 'if-range': 'Wed, 21 Oct 2026 07:28:00 GMT' }],
  ])('%s is ignored', async (_what, headers) => {
    const response = await fetch(`${base}/media/${name}`, { headers });
    expect(response.status).toBe(200);
    expect(Buffer.from(await response.arrayBuffer()).equals(pixels)).toBe(true);
  });

  test('is answered with 206 if If-Range has the tag of the picture', async () => {
    const headers = { range: 'bytes=0-3', 'if-range': `"${name}"` };
    expect((await fetch(`${base}/media/${name}`, { headers })).status).toBe(206);
  });
});
