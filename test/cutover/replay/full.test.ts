import { readdir } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { createReplayQueue } from '../../../src/cutover/replay/queue/queue.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { runTool } from '../../support/tools/admin.ts';
import { startBridge } from '../../support/bridge.ts';
import { startRedis } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';
import { until } from '../../support/until.ts';
import { startLegacyBridge } from '../../support/legacy/bridge.ts';
import { openReplaying, organizationId } from './replaying.ts';
import { redPng } from '../../support/requests/pictures.ts';

test('a change beyond REPLAY_MAX is 503 replay-unavailable, and leaves nothing behind', async () => {
  const full = await startLegacyBridge({ replaySecret: 'secret'.repeat(6), replayMax: 0 }, {}, 'reverse');
  const ada = await full.player('ada');
  const picture = await redPng();
  const upload = new FormData();
  upload.set('profilePicture', new Blob([new Uint8Array(picture)], { type: 'image/png' }), 'p.png');
  for (const body of [JSON.stringify({ username: 'Ada' }), upload]) {
    const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
    const response = await full.send(ada, 'PUT', '/api/profile/', { body, headers });
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await response.json()).toMatchObject({ code: 'replay-unavailable' });
  }
  expect(await readdir(full.bridge.mediaFolder)).toEqual([]);
  expect((await full.send(ada, 'GET', '/api/profile/')).status).toBe(404);
  await full.close();
});

test('while Redis is full, what waits is replayed, which frees memory, and the mode can be switched back', async () => {
  const redis = await startRedis();
  const secret = 's'.repeat(32);
  const here = await startLegacyBridge({ redisUrl: redis.url, replaySecret: secret }, {}, 'reverse');
  const { store, config } = here.bridge;
  const player = await here.player('ada');
  here.legacy.behaviour.failWith = 429;
  const headers = { 'content-type': 'application/json' };
  for (const username of ['Ada', 'Eve', 'Ada']) {
    const body = JSON.stringify({ username });
    expect((await here.send(player, 'PUT', '/api/profile/', { body, headers })).status).toBe(200);
  }
  await until(() => here.legacy.received.length > 0);
  await store.config('SET', 'maxmemory', '1mb');
  here.legacy.behaviour.failWith = undefined;

  const queue = createReplayQueue(store, config.keyPrefix);
  const deadline = performance.now() + 60_000;
  await until(async () => (await queue.state()).entries === 0 || performance.now() > deadline);
  expect((await queue.state()).entries).toBe(0);
  expect(here.legacy.organization(here.organization.id).profiles.get('ada')).toEqual({ username: 'Ada' });
  const env = { REDIS_URL: redis.url, KEY_PREFIX: config.keyPrefix, LEGACY_BASE_URL: here.legacy.url };
  expect(await runTool(env, 'cutover set mirror --hold 60')).toMatchObject({ code: 0 });
  await here.close();
  await redis.stop();
});

test('while Redis is full, an instance can start, and goes on with the replay', async () => {
  const redis = await startRedis();
  const secret = 's'.repeat(32);
  const here = await startLegacyBridge({ redisUrl: redis.url, replaySecret: secret }, {}, 'reverse');
  const { config } = here.bridge;
  const player = await here.player('ada');
  here.legacy.behaviour.failWith = 429;
  const body = JSON.stringify({ username: 'Ada' });
  const headers = { 'content-type': 'application/json' };
  expect((await here.send(player, 'PUT', '/api/profile/', { body, headers })).status).toBe(200);
  await here.bridge.store.config('SET', 'maxmemory', '1mb');
  await here.bridge.close();
  here.legacy.behaviour.failWith = undefined;

  const next = await startBridge({ ...config, legacyTimeout: 1000 });
  const queue = createReplayQueue(next.store, config.keyPrefix);
  await until(async () => (await queue.state()).entries === 0);
  expect(here.legacy.organization(here.organization.id).profiles.get('ada')).toEqual({ username: 'Ada' });
  await next.close();
  await here.legacy.close();
  await redis.stop();
});

test('while Redis is full, an instance that was held up can queue the current state to be sent again', async () => {
  const redis = await startRedis();
  const store = await openTestStore(redis.url);
  const here = await openReplaying(store);
  await here.put('ada', 'Ada');
  const [change] = await here.queue.read(organizationId, 1);
  if (change === undefined) throw new Error('nothing waits');
  await store.config('SET', 'maxmemory', '1mb');

  await here.queue.sendAgain(change, 'one');
  expect(await here.waiting()).toBe(2);
  await here.close();
  await closeRedis(store);
  await redis.stop();
});
