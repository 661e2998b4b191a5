import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { cutoverKey, sweepKey } from '../../src/redis/keys.ts';
import { fsck, type Fault } from '../../src/redis/fsck/fsck.ts';
import { revokeApiKey } from '../../src/redis/operator/api-keys.ts';
import { sweepOrganizations } from '../../src/redis/sweep.ts';
import { startBridge, type TestBridge, type TestOrganization } from '../support/bridge.ts';
import { createClient, type Client } from '../support/requests/client.ts';
import { startRedis, type RedisProcess } from '../support/redis.ts';
import { startStopwatch } from '../support/stopwatch.ts';
import { openTestStore } from '../support/store.ts';

let redis: RedisProcess;
let bridge: TestBridge;
let organization: TestOrganization;
let player: Client;
beforeAll(async () => {
  redis = await startRedis();
  bridge = await startBridge({ redisUrl: redis.url, redisTimeouts: {} });
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
  test('makes requests 503 within 3 s, and is used again once it responds', async () => {
    process.kill(redis.pid, 'SIGSTOP');
    try {
      const elapsed = startStopwatch();
      const answers = await Promise.all([
        player.request('GET', '/api/profile/'),
        player.request('PUT', '/api/profile/', { json: { username: 'bob' } }),
        player.request('GET', '/readyz'),
      ]);
      expect(elapsed()).toBeLessThan(3000);
      expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
      expect(answers[0]?.body).toMatchObject({ code: 'store-unavailable' });
      expect(answers[1]?.body).toMatchObject({
        detail: expect.stringMatching(/unknown how much of it took effect.*again is safe/),
      });
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
  test('makes writes 503, while reads go on', async () => {
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

  test('is emptied of what a refused change had written, and lets keys be revoked', async () => {
    const admin = await organization.admin();
    const names = Array.from({ length: 20_000 }, (_, n) => `name-${n}-${'x'.repeat(50)}`);
    const { keyId } = await organization.newKey({ role: 'player', userId: 'u2' });
    const used = /used_memory:(\d+)/.exec(await bridge.store.info('memory'))?.[1];
    await bridge.store.config('SET', 'maxmemory', String(Number(used) + 2_500_000));
    try {
      const put = await admin.request('PUT', '/api/profile/username/denylist/', { json: names });
      expect([put.status, put.body]).toMatchObject([503, { code: 'store-unavailable' }]);
      expect(await bridge.store.exists(`${organization.base}stage`)).toBe(0);
      await bridge.store.config('SET', 'maxmemory', '1mb');
      expect(await revokeApiKey(bridge.store, organization.base, keyId)).toBe('revoked');
      await bridge.store.unlink(sweepKey(bridge.config.keyPrefix));
      const visited: string[] = [];
      await sweepOrganizations(bridge.store, bridge.config.keyPrefix, [async (base) => visited.push(base)]);
      expect(visited).toEqual([organization.base]);
    } finally {
      await bridge.store.config('SET', 'maxmemory', '0');
    }
  });

  test('is emptied by fsck of what a killed rebuild has left, also where what needs memory is not repaired', async () => {
    const { store, config } = bridge;
    const { base } = organization;
    await store.hset(`${base}settings`, { building: '1', n0: '1', n1: '200' });
    for (let bucket = 0; bucket < 200; bucket++) await store.hset(`${base}n1:${bucket}`, 'ada', 'u1');
    await store.hset(`${base}d1`, 'root', '');
    await store.hset(`${base}keys`, 'k_gone', 'nothing');
    const faults: Fault[] = [];
    const repair = async () =>
      await fsck(store, config.keyPrefix, { repair: true, onFault: (fault) => faults.push(fault) });
    await store.config('SET', 'maxmemory', '1mb');
    try {
      await expect(repair()).rejects.toThrow('OOM');
      expect(faults).toMatchObject([
        { kind: 'key-list-stale', isRepaired: false },
        { kind: 'generation-left-over', isRepaired: true },
      ]);
      expect(await store.keys(`${base}[nd]1*`)).toEqual([]);
      expect(await store.hget(`${base}settings`, 'n1')).toBeNull();
    } finally {
      await store.config('SET', 'maxmemory', '0');
    }
    expect(await repair()).toMatchObject({ found: 1, repaired: 1 });
  });

  test('makes each instance count the requests of a limited key by itself', async () => {
    const { redisUrl } = bridge.config;
    const limited = await startBridge({ redisUrl, rateLimit: { requests: 2, seconds: 60 } });
    try {
      const caller = await (await limited.newOrganization()).player('u1');
      await bridge.store.config('SET', 'maxmemory', '1mb');
      const statuses = [];
      for (let n = 0; n < 3; n++) statuses.push((await caller.request('GET', '/api/profile/')).status);
      expect(statuses).toEqual([404, 404, 429]);
    } finally {
      await bridge.store.config('SET', 'maxmemory', '0');
      await limited.close();
    }
  });

  test('does not prevent an instance from starting, nor from stopping in good order', async () => {
    const { redisUrl, keyPrefix } = bridge.config;
    const instances = async () => (await bridge.store.hkeys(cutoverKey(keyPrefix))).toSorted();
    const before = await instances();
    await bridge.store.config('SET', 'maxmemory', '1mb');
    try {
      const other = await startBridge({ redisUrl, keyPrefix });
      expect((await createClient(other.url).request('GET', '/readyz')).status).toBe(200);
      expect(await instances()).toHaveLength(before.length + 2);
      await other.close();
      expect(await instances()).toEqual(before);
    } finally {
      await bridge.store.config('SET', 'maxmemory', '0');
    }
  });
});

describe('a store that is loading its data', () => {
  test('is not ready, since nothing can be read from it', async () => {
    const loading = await startRedis([
      '--enable-debug-command',
      'yes',
      '--key-load-delay',
      '20000',
      '--loading-process-events-interval-bytes',
      '1024',
    ]);
    const other = await startBridge({ redisUrl: loading.url });
    const operator = new Redis(loading.url);
    try {
      const client = createClient(other.url);
      expect((await client.request('GET', '/readyz')).status).toBe(200);
      for (let n = 0; n < 100; n++) await operator.set(`k${n}`, 'x'.repeat(100));
      const reloaded = operator.call('DEBUG', 'RELOAD');
      let ready = await client.request('GET', '/readyz');
      while (ready.status === 200) ready = await client.request('GET', '/readyz');
      expect([ready.status, ready.body]).toMatchObject([503, { degraded: ['store-unavailable'] }]);
      await reloaded;
      while (ready.status !== 200) ready = await client.request('GET', '/readyz');
    } finally {
      operator.disconnect();
      await other.close();
      await loading.stop();
    }
  });
});

describe('a store that was demoted to a replica', () => {
  test('is not read from, and is used again once it is a master', async () => {
    const demoted = await startRedis();
    const other = await startBridge({ redisUrl: demoted.url });
    const operator = new Redis(demoted.url);
    try {
      const user = await (await other.newOrganization()).player('u1');
      await user.request('PUT', '/api/profile/', { json: { username: 'ada' } });
      // Without a master to follow it keeps its data, which goes out of date.
      await operator.replicaof('127.0.0.1', 1);
      for (const method of ['GET', 'PUT'] as const) {
        const json = method === 'PUT' ? { username: 'bob' } : undefined;
        const answer = await user.request(method, '/api/profile/', json === undefined ? {} : { json });
        expect([answer.status, answer.body]).toMatchObject([503, { code: 'store-unavailable' }]);
      }
      let ready = await user.request('GET', '/readyz');
      while (JSON.stringify(ready.body).includes('store-unavailable')) {
        ready = await user.request('GET', '/readyz');
      }
      expect([ready.status, ready.body]).toEqual([
        503,
        { status: 'unavailable', degraded: ['store-read-only'] },
      ]);
      await operator.replicaof('NO', 'ONE');
      let answer = await user.request('GET', '/api/profile/');
      while (answer.status !== 200) answer = await user.request('GET', '/api/profile/');
      expect(answer.body).toMatchObject({ username: 'ada' });
    } finally {
      operator.disconnect();
      await other.close();
      await demoted.stop();
    }
  });
});

describe('a master that takes no writes', () => {
  test('because it lacks replicas is still read from, and /readyz says so', async () => {
    await bridge.store.config('SET', 'min-replicas-to-write', '1');
    try {
      const put = await player.request('PUT', '/api/profile/', { json: { username: 'carol' } });
      expect([put.status, put.body]).toMatchObject([503, { code: 'store-unavailable' }]);
      expect((await player.request('GET', '/api/profile/')).status).toBe(200);
      const ready = await player.request('GET', '/readyz');
      expect([ready.status, ready.body]).toEqual([
        200,
        { status: 'degraded', degraded: ['store-read-only'] },
      ]);
    } finally {
      await bridge.store.config('SET', 'min-replicas-to-write', '0');
    }
  });
});

describe('a store that is gone', () => {
  test('makes requests 503 at once, which are not sent later, and is used again when it is back', async () => {
    const port = String(redis.port);
    await redis.stop();
    const elapsed = startStopwatch();
    const answer = await player.request('PUT', '/api/profile/', { json: { username: 'ghost' } });
    expect([answer.status, answer.body]).toMatchObject([503, { code: 'store-unavailable' }]);
    expect(elapsed()).toBeLessThan(3000);

    redis = await startRedis(['--port', port]);
    // The new one is empty: the key is not known there.
    await until(401);
    const own = await openTestStore(redis.url);
    expect(await own.keys(`${organization.base}p:*`)).toEqual([]);
    await closeRedis(own);
  });
});
