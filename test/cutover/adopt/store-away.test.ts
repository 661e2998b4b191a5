import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Health } from '../../../src/contract/types.gen.ts';
import { forwardChange, settleUnmarked } from '../../../src/cutover/adopt/mirrored-change.ts';
import { createFindings } from '../../../src/cutover/compare/findings.ts';
import { connectLegacy } from '../../../src/cutover/forward/legacy.ts';
import { joinCutover } from '../../../src/cutover/switch/instance.ts';
import { createLog } from '../../../src/log.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { cutoverKey, organizationBase } from '../../../src/redis/keys.ts';
import { cutoverBegin, readCutover } from '../../../src/cutover/switch/registry.ts';
import { runTool } from '../../support/tools/admin.ts';
import { startLegacy, type Legacy } from '../../support/legacy/legacy.ts';
import { startRedis } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';
import { until } from '../../support/until.ts';
import { startLegacyBridge } from '../../support/legacy/bridge.ts';

const keyPrefix = 'away:';
let store: RedisClient;
let legacy: Legacy;

beforeAll(async () => {
  legacy = await startLegacy();
  legacy.behaviour.failWith = 503;
});
afterAll(() => legacy.close());

test('while Redis and the legacy service fail, only so many organizations can be made up', async () => {
  const redis = await startRedis();
  store = await openTestStore(redis.url);
  const findings = createFindings(store, keyPrefix, createLog('silent'));
  const cutover = await joinCutover(store, { keyPrefix, kind: 'bridge', legacy: true, replay: true });
  const there = connectLegacy(legacy.url, 5000);
  await redis.stop();
  const work: Promise<void>[] = [];
  const options = {
    store,
    legacy: there,
    findings,
    cutover,
    inBackground: (one: () => Promise<void>) => void work.push(one()),
    signal: new AbortController().signal,
  };
  let ended = 0;
  const change = async (organizationId: string): Promise<number> => {
    const base = organizationBase(keyPrefix, organizationId);
    const headers = ['x-api-key', 'any', 'x-platform-organization-id', organizationId];
    const credentials = { organizationId, base, apiKey: 'any', sha256: '', headers, userAgent: undefined };
    const { status, body } = await forwardChange(
      options,
      {
        operation: 'putProfile',
        credentials,
        found: undefined,
        request: { method: 'PUT', path: '/api/profile/', headers, body: Buffer.from('{}') },
        readBody: () => Promise.resolve({}),
        admission: { mode: 'mirror', epoch: 1 },
        end: async () => void ended++,
      },
      async () => settleUnmarked(options, credentials, 'unmarked-change'),
    );
    for await (const part of body) expect(part.length).toBeGreaterThan(0);
    await Promise.all(work);
    return status;
  };

  expect(await change('first')).toBe(503);
  for (let n = 1; n < 20_000; n++) findings.recordGap(`made-up-${n}`, 'unmarked-change', 0);
  legacy.received.length = 0;
  await expect(change('one-more')).rejects.toMatchObject({ code: 'store-unavailable' });
  expect(legacy.received).toEqual([]);
  expect(await change('first')).toBe(503);
  expect(ended).toBe(3);

  await cutover.close();
  await findings.close();
  await there.close();
  await closeRedis(store);
});

test('an instance is ready without Redis while it forwards all requests, but not during a switch', async () => {
  const redis = await startRedis();
  const here = await startLegacyBridge({ redisUrl: redis.url, redisTimeouts: {} }, {}, 'mirror');
  const ada = await here.player('ada');
  const body = JSON.stringify({ username: 'Ada' });
  const ready = async () => {
    const response = await fetch(`${here.bridge.url}/readyz`);
    return [response.status, (await response.json()) as Health] as const;
  };
  process.kill(redis.pid, 'SIGSTOP');
  try {
    expect(await ready()).toEqual([200, { status: 'degraded', degraded: ['store-unavailable'] }]);
    expect((await here.send(ada, 'PUT', '/api/profile/', { body })).status).toBe(200);
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
  const { store: own, config } = here.bridge;
  await until(async () => (await ready())[1].status === 'ok');
  await cutoverBegin(own, cutoverKey(config.keyPrefix), 'token', 'mirror', 'shadow', 60_000);
  await until(async () => (await readCutover(own, config.keyPrefix)).instances[0]?.acknowledged === 'stop');
  process.kill(redis.pid, 'SIGSTOP');
  try {
    expect(await ready()).toEqual([503, { status: 'unavailable', degraded: ['store-unavailable'] }]);
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
  await here.close();
  await redis.stop();
});

test('an instance whose gaps Redis is too full for holds up a switch, which says so, and leaves one when it stops', async () => {
  const redis = await startRedis();
  const here = await startLegacyBridge({ redisUrl: redis.url }, {}, 'mirror');
  const ada = await here.player('ada');
  const own = await openTestStore(redis.url);
  await own.config('SET', 'maxmemory', '1mb');
  const env = {
    REDIS_URL: redis.url,
    KEY_PREFIX: here.bridge.config.keyPrefix,
    LEGACY_BASE_URL: here.legacy.url,
  };
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ username: 'Ada' });
  expect((await here.send(ada, 'PUT', '/api/profile/', { body, headers })).status).toBe(200);
  const { code, err } = await runTool(env, 'cutover set shadow --hold 1');
  expect(code).toBe(1);
  expect(err).toMatch(/cannot record in Redis which changes may be missing there: .*maxmemory/);
  expect(err).not.toContain('--hold');
  await here.close();
  const { gap, instances } = await readCutover(own, here.bridge.config.keyPrefix);
  expect(instances).toEqual([]);
  expect(gap?.reason).toMatch(/ stopped before it could record which changes may be missing here$/);
  await closeRedis(own);
  await redis.stop();
});
