import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer, request as send, type IncomingMessage, type RequestOptions } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLog } from '../../src/log.ts';
import { watchMedia } from '../../src/media/availability.ts';
import { newPictureName } from '../../src/media/store.ts';
import { openMediaStore } from '../../src/media/open.ts';
import { startBridge, type TestBridge, type TestOrganization } from '../support/bridge.ts';
import { describeWithS3, s3Credentials, startS3, type S3Service } from './swift.ts';
import { halves } from '../support/requests/pictures.ts';

const log = createLog('error');
log.silent = true;

/**
 * Starts a proxy before a bucket, which answers 403 AccessDenied in place of some responses, as Amazon's does where the
 * access key lacks a permission.
 */
async function startProxy(port: number, isDenied: (request: IncomingMessage, status: number) => boolean) {
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    const options: RequestOptions = { host: '127.0.0.1', port, method, path: url, headers };
    const sent = send(options, (answer) => {
      const { statusCode = 0 } = answer;
      if (isDenied(request, statusCode)) {
        answer.resume();
        response.writeHead(403, { 'content-type': 'application/xml' });
        response.end('<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>');
      } else answer.pipe(response.writeHead(statusCode, answer.headers));
    });
    request.pipe(sent);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'availability-'));
});
afterAll(() => rm(folder, { recursive: true }));

describeWithS3('while the bucket is away', () => {
  let s3: S3Service;
  let bridge: TestBridge;
  let organization: TestOrganization;
  const bucket = (): string => `s3://pics?endpoint=${s3.endpoint}`;
  const startAgain = async (): Promise<void> => {
    s3 = await startS3(path.join(folder, 's3'), s3.port);
  };
  beforeAll(async () => {
    s3 = await startS3(path.join(folder, 's3'));
    await s3.createBucket('pics');
    bridge = await startBridge({ mediaUrl: bucket(), aws: s3Credentials });
    organization = await bridge.newOrganization();
  });
  afterAll(async () => {
    await bridge.close();
    await s3.stop();
  });

  test('uploads are 503, everything else works, and /readyz is degraded until pictures can be stored again', async () => {
    const player = await organization.player('u1');
    const upload = async () => {
      const form = new FormData();
      form.set('profilePicture', new Blob([new Uint8Array(await halves().png().toBuffer())]), 'picture.png');
      return await player.request('PUT', '/api/profile/', { form });
    };
    const readiness = async () => (await player.request('GET', '/readyz')).body;
    expect((await upload()).status).toBe(200);
    expect(await readiness()).toEqual({ status: 'ok', degraded: [] });

    await s3.stop();
    const refused = await upload();
    const detail: unknown = expect.stringContaining('Nothing was changed');
    expect([refused.status, refused.body]).toMatchObject([503, { code: 'store-unavailable', detail }]);
    expect((await player.request('PUT', '/api/profile/', { json: { username: 'ada' } })).status).toBe(200);
    expect(await readiness()).toEqual({ status: 'degraded', degraded: ['pictures-unavailable'] });

    await startAgain();
    expect((await upload()).status).toBe(200);
    expect(await readiness()).toEqual({ status: 'ok', degraded: [] });
  });

  test('its absence and its return are noticed without any upload', async () => {
    const store = await openMediaStore(bucket(), { dataDir: folder, aws: s3Credentials });
    const { arePicturesAvailable, close } = watchMedia(store, log, 10);
    const until = async (available: boolean): Promise<void> => {
      while (arePicturesAvailable() !== available) await store.open(newPictureName('png'), 1).catch(() => {});
    };
    await s3.stop();
    await until(false);
    await startAgain();
    await until(true);
    await close();
  });
});

describeWithS3('with an access key that lacks a permission', () => {
  let s3: S3Service;
  beforeAll(async () => {
    s3 = await startS3(path.join(folder, 's3-permissions'));
    await s3.createBucket('pics');
  });
  afterAll(() => s3.stop());
  const openThrough = async (proxy: { url: string }) =>
    await openMediaStore(`s3://pics?endpoint=${proxy.url}`, { dataDir: folder, aws: s3Credentials });

  test('to list the bucket, a missing picture is not found, and others are served', async () => {
    const proxy = await startProxy(s3.port, ({ method }, status) => method === 'GET' && status === 404);
    const store = await openThrough(proxy);
    const name = newPictureName('png');
    await store.save(name, Buffer.from('pixels'));
    expect((await store.open(name, 10))?.size).toBe(6);
    expect(await store.open(newPictureName('png'), 1)).toBeUndefined();
    proxy.close();
  });

  test('to read pictures, the bucket is refused when it is opened', async () => {
    const proxy = await startProxy(s3.port, ({ method }) => method === 'GET');
    await expect(openThrough(proxy)).rejects.toThrow(
      /^MEDIA_URL: Cannot read from .*AccessDenied.*getting, putting/,
    );
    proxy.close();
  });

  test('to remove pictures since, they can be stored all the same, and one test file is left', async () => {
    let isRevoked = false;
    const written = new Set<string>();
    const proxy = await startProxy(s3.port, ({ method, url = '' }) => {
      if (isRevoked && method === 'PUT') written.add(new URL(url, 'http://proxy').pathname);
      return isRevoked && method === 'DELETE';
    });
    const store = await openThrough(proxy);
    isRevoked = true;
    let tests = 0;
    let enough = (): void => {};
    const repeated = new Promise<void>((resolve) => (enough = resolve));
    const remove = async (name: string): Promise<void> => {
      if (++tests === 3) enough();
      await store.remove(name);
    };
    const watched = watchMedia({ ...store, remove }, log, 1);
    await repeated;
    await watched.close();
    expect(watched.arePicturesAvailable()).toBe(true);
    expect(written.size).toBe(1);
    proxy.close();
  });
});

test('a picture that cannot be read says nothing about whether pictures can be stored', async () => {
  const media = path.join(folder, 'unreadable');
  const store = await openMediaStore(`file://${media}`, { dataDir: folder });
  const watched = watchMedia(store, log, 60_000);
  const name = newPictureName('png');
  await mkdir(path.join(media, name));
  await expect(watched.media.open(name, 1)).rejects.toThrow('EISDIR');
  expect(watched.arePicturesAvailable()).toBe(true);
  await watched.close();
});

test('a folder that can no longer be written to is noticed without any upload', async () => {
  const media = path.join(folder, 'media');
  const store = await openMediaStore(`file://${media}`, { dataDir: folder });
  const watched = watchMedia(store, log, 60_000);
  await rm(media, { recursive: true });
  await expect(watched.media.save(newPictureName('png'), Buffer.from('x'))).rejects.toThrow('ENOENT');
  expect(watched.arePicturesAvailable()).toBe(false);
  await watched.close();
});
