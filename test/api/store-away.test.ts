import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startBridge, type TestBridge, type TestOrganization } from '../support/bridge.ts';
import type { Client } from '../support/client.ts';
import { startRedis, type RedisProcess } from '../support/redis.ts';

let redis: RedisProcess;
let bridge: TestBridge;
let organization: TestOrganization;
let player: Client;
beforeAll(async () => {
  redis = await startRedis();
  bridge = await startBridge({ redisUrl: redis.url });
  organization = await bridge.newOrganization();
  player = await organization.player('u1');
  await player.request('PUT', '/api/profile/', { json: { username: 'ada' } });
});
afterAll(async () => {
  await bridge.close();
  await redis.stop();
});

/** Asks until the answer has this status; the test's own time limit ends it. */
async function until(status: number, path = '/api/profile/'): Promise<void> {
  for (;;) {
    if ((await player.request('GET', path)).status === status) return;
  }
}

describe('a store that hangs', () => {
  test('every answer is 503 within 3 s, and it recovers by itself', async () => {
    process.kill(redis.pid, 'SIGSTOP');
    try {
      const begun = Date.now();
      const answers = await Promise.all([
        player.request('GET', '/api/profile/'),
        player.request('PUT', '/api/profile/', { json: { username: 'bob' } }),
        player.request('GET', '/readyz'),
      ]);
      expect(Date.now() - begun).toBeLessThan(3000);
      expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
      expect(answers[0]?.body).toMatchObject({ code: 'store-unavailable' });
      expect(answers[0]?.headers['retry-after']).toMatch(/^\d+$/);
      expect((await player.request('GET', '/livez')).status).toBe(200);
    } finally {
      process.kill(redis.pid, 'SIGCONT');
    }
    await until(200, '/readyz');
    await until(200);
  });
});

describe('a store that is full', () => {
  test('refuses writes with 503, and goes on reading', async () => {
    await bridge.store.config('SET', 'maxmemory', '1mb');
    try {
      const put = await player.request('PUT', '/api/profile/', { json: { username: 'carol' } });
      expect([put.status, put.body]).toMatchObject([503, { code: 'store-unavailable' }]);
      expect((await player.request('GET', '/api/profile/')).status).toBe(200);
      const ready = await player.request('GET', '/readyz');
      expect([ready.status, ready.body]).toEqual([200, { status: 'degraded', degraded: ['store-full'] }]);
    } finally {
      await bridge.store.config('SET', 'maxmemory', '0');
    }
  });
});

describe('a store that is gone', () => {
  test('answers 503 at once, keeps nothing for later, and is used again when it is back', async () => {
    const port = String(redis.port);
    await redis.stop();
    const begun = Date.now();
    const answer = await player.request('PUT', '/api/profile/', { json: { username: 'ghost' } });
    expect([answer.status, answer.body]).toMatchObject([503, { code: 'store-unavailable' }]);
    expect(Date.now() - begun).toBeLessThan(3000);

    redis = await startRedis(['--port', port]);
    // The new one is empty: the key is not known there.
    await until(401);
    expect(await bridge.store.dbsize()).toBe(0);
  });
});
