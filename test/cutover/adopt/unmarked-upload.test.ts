import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { storeTime } from '../../../src/redis/connection/client.ts';
import { gapsKey, profileKey } from '../../../src/redis/keys.ts';
import { startLegacyBridge } from '../../support/legacy/bridge.ts';
import { startRedis } from '../../support/redis.ts';
import { createTool, newFolder, writeSource } from '../../support/tools/migrate.ts';
import { until } from '../../support/until.ts';

const redis = await startRedis();
const here = await startLegacyBridge({ redisUrl: redis.url, redisTimeouts: {} }, {}, 'mirror');
afterAll(async () => {
  await here.close();
  await redis.stop();
});

test('a copy of a picture from before an upload while Redis was away is a difference, and is made again', async () => {
  const { store, config } = here.bridge;
  const { id: organizationId, base } = here.organization;
  const ada = await here.player('ada');
  const tool = createTool(redis.url, config.keyPrefix);
  const profilePictureUrl = 'https://legacy/pictures/ada.png';
  const profiles = [{ organizationId, userId: 'ada', profilePictureUrl }];
  const source = ['--source', writeSource({ profiles }), '--entities', 'profiles'];
  const pictures = newFolder();
  const draw = async (background: string) => {
    const image = sharp({ create: { width: 8, height: 8, channels: 3, background } });
    writeFileSync(join(pictures, 'ada.png'), await image.png().toBuffer());
  };
  const copied = async () => await store.hget(profileKey(base, 'ada'), 'pf');

  await draw('#123456');
  expect(await tool.json('apply', ...source, '--copy-pictures', pictures)).toMatchObject({ exitCode: 0 });
  const before = await copied();
  expect(before).toMatch(/\.png$/);
  expect(await tool.json('verify', ...source)).toMatchObject({ json: { ok: true } });

  process.kill(redis.pid, 'SIGSTOP');
  try {
    // The new picture has the URL of the one before.
    const chunks = [Buffer.from('{}')];
    here.legacy.behaviour.override = { method: 'PUT', status: 200, headers: {}, chunks };
    const body = new FormData();
    body.append('profilePicture', new Blob(['new'], { type: 'image/png' }), 'new.png');
    expect((await here.send(ada, 'PUT', '/api/profile/', { body })).status).toBe(200);
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
  await until(async () => (await store.hkeys(gapsKey(base))).includes('unmarked-change'));

  expect(await tool.json('verify', ...source)).toMatchObject({ json: { ok: false, differences: 1 } });
  await draw('#654321');
  const asOf = new Date(await storeTime(store)).toISOString();
  expect(await tool.json('apply', ...source, '--copy-pictures', pictures, '--as-of', asOf)).toMatchObject({
    exitCode: 0,
    json: { pictures: { copied: 1 } },
  });
  expect(await copied()).toMatch(/\.png$/);
  expect(await copied()).not.toBe(before);
  expect(await tool.json('verify', ...source)).toMatchObject({ json: { ok: true } });
});
