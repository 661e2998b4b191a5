import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLog } from '../../src/log.ts';
import { watchMedia } from '../../src/media/lifecycle.ts';
import { newPictureName } from '../../src/media/store.ts';
import { openMediaStore } from '../../src/media/open.ts';
import { startBridge, type TestBridge, type TestOrganization } from '../support/bridge.ts';
import { describeWithS3, s3Credentials, startS3, type S3Service } from './swift.ts';
import { halves } from './pictures.ts';

const log = createLog('error');
log.silent = true;

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
    expect([refused.status, refused.body]).toMatchObject([503, { code: 'store-unavailable' }]);
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

test('a folder that can no longer be written to is noticed without any upload', async () => {
  const media = path.join(folder, 'media');
  const store = await openMediaStore(`file://${media}`, { dataDir: folder });
  const watched = watchMedia(store, log, 60_000);
  await rm(media, { recursive: true });
  await expect(watched.media.save(newPictureName('png'), Buffer.from('x'))).rejects.toThrow('ENOENT');
  expect(watched.arePicturesAvailable()).toBe(false);
  await watched.close();
});
