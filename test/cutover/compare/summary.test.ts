import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createFindings, type Findings } from '../../../src/cutover/compare/findings.ts';
import { readComparisons } from '../../../src/cutover/compare/summary.ts';
import { hourMs } from '../../../src/lib/days.ts';
import { createLog } from '../../../src/log.ts';
import { storeTime, type RedisClient } from '../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { comparisonsKey, organizationBase } from '../../../src/redis/keys.ts';
import { freshPrefix } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';

const since = Date.UTC(2026, 0, 1);
const prefix = freshPrefix();
const key = comparisonsKey(organizationBase(prefix, 'acme'));
let store: RedisClient;
let findings: Findings;
beforeAll(async () => {
  store = await openTestStore();
  findings = createFindings(store, prefix, createLog('silent'));
});
afterAll(async () => {
  await findings.close();
  await closeRedis(store);
});

async function hours() {
  await findings.flush();
  const [summary] = await readComparisons(store, prefix);
  return summary?.hours;
}

test('comparisons are counted by hour, kept for two days, and reset in each mode', async () => {
  findings.recordComparison('acme', since, { kind: 'same', userId: 'u1' });
  findings.recordComparison('acme', since, { kind: 'different', userId: 'u2', fields: ['username'] });
  expect(await hours()).toEqual([{ from: expect.any(Number), compared: 2, different: 1 }]);

  // As if the hours had passed.
  const now = Math.floor((await storeTime(store)) / hourMs);
  await store.hset(key, { since, [`hour:${now - 48}:same`]: 7, [`hour:${now - 2}:different`]: 3 });
  await store.hdel(key, `hour:${now}:same`, `hour:${now}:different`);
  findings.recordComparison('acme', since, { kind: 'same', userId: 'u1' });
  expect(await hours()).toEqual([
    { from: (now - 2) * hourMs, compared: 3, different: 3 },
    { from: now * hourMs, compared: 1, different: 0 },
  ]);

  findings.recordComparison('acme', since + 1, { kind: 'same', userId: 'u1' });
  expect(await hours()).toEqual([{ from: expect.any(Number), compared: 1, different: 0 }]);
});
