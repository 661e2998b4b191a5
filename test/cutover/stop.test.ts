import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { leaseMs } from '../../src/cutover/lease.ts';
import type { Mode } from '../../src/cutover/modes.ts';
import { cutoverKey, replayerKey, replayKey, unsettledKey } from '../../src/redis/keys.ts';
import type { Overrides } from '../support/bridge.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { useTestStore } from '../support/use-store.ts';
import { startLegacyBridge } from '../support/legacy/bridge.ts';

const store = await useTestStore();

/** Stops a bridge while the legacy service does not respond to a change, once `before` has ended. */
async function stopDuringChange(mode: Mode, overrides: Overrides = {}, before = () => Promise.resolve()) {
  const options = { legacyTimeout: 60_000, replaySecret: 's'.repeat(32), ...overrides };
  const here = await startLegacyBridge(options, {}, mode);
  const ada = await here.player('ada');
  here.legacy.behaviour.gate = new Promise(() => {});
  const headers = { 'content-type': 'application/json' };
  const sending = here.send(ada, 'PUT', '/api/profile/', { body: '{"username":"Ada"}', headers });
  sending.catch(() => {});
  await until(() => here.legacy.received.some(({ method }) => method === 'PUT'));
  await before();
  const startedAt = performance.now();
  await here.close();
  const { keyPrefix } = here.bridge.config;
  return {
    keyPrefix,
    base: here.organization.base,
    seconds: (performance.now() - startedAt) / 1000,
    state: await store.hgetall(cutoverKey(keyPrefix)),
  };
}

test('a bridge that stops in mirror does not wait long for the outcome of a change, which stays in doubt', async () => {
  const { base, seconds, state } = await stopDuringChange('mirror');
  expect(seconds).toBeLessThan(20);
  expect(await store.hkeys(unsettledKey(base))).toEqual(['ada']);
  expect(Object.keys(state)).not.toContainEqual(expect.stringMatching(/^instance:|^gap$/));
});

test('a bridge that stops in reverse leaves a change without an outcome to the next one', async () => {
  const { keyPrefix, base, seconds, state } = await stopDuringChange('reverse');
  expect(seconds).toBeLessThan(20);
  expect(await store.xlen(replayKey(base))).toBe(1);
  expect(await store.exists(replayerKey(keyPrefix))).toBe(0);
  expect(Object.keys(state)).not.toContainEqual(expect.stringMatching(/^instance:|^gap$/));
});

test('a bridge that stops in reverse does not wait for a Redis that is away', async () => {
  const redis = await startRedis();
  const { seconds } = await stopDuringChange('reverse', { redisUrl: redis.url }, async () => {
    await redis.stop();
    // So that another instance could have taken over.
    await sleep(leaseMs);
  });
  expect(seconds).toBeLessThan(20);
});
