import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLog } from '../../../src/log.ts';
import { createLedger } from '../../../src/deprecation/ledger/ledger.ts';
import { clearLayer, setInLayer } from '../../../src/deprecation/policy/policy-edits.ts';
import { changePolicy, watchPolicy } from '../../../src/deprecation/policy/policy-store.ts';
import { reportUsage } from '../../../src/deprecation/reports/report.ts';
import { retireCheck } from '../../../src/deprecation/reports/retire-check.ts';
import { readUsageQuery } from '../../../src/deprecation/reports/usage-query.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { organizationsKey } from '../../../src/redis/keys.ts';
import { startCluster, type RedisCluster } from '../../support/servers/redis-cluster.ts';
import { openTestStore } from '../../support/store.ts';

const NOW = Date.parse('2027-03-01T12:00:00Z');
const log = createLog('silent');
let cluster: RedisCluster;
let client: RedisClient;

beforeAll(async () => {
  cluster = await startCluster();
  client = await openTestStore(cluster.url);
});
afterAll(async () => {
  await closeRedis(client);
  await cluster.stop();
});

test('on a cluster, reports find the calls of all organizations', async () => {
  const organizations = Array.from({ length: 30 }, (_, i) => `org-${i}`);
  await client.sadd(organizationsKey('pb:'), ...organizations);
  const ledger = createLedger(client, 'pb:', { log, now: () => NOW, flushMs: 1_000_000 });
  for (const organizationId of [...organizations, 'junk']) {
    ledger.record({ organizationId, operation: 'getProfile', status: 401 });
    if (organizationId === 'junk') continue;
    ledger.record({ organizationId, keyId: `k_${organizationId}`, operation: 'getProfile', status: 200 });
  }
  await ledger.flush();
  expect(ledger.lagSeconds()).toBe(0);
  const read = readUsageQuery({ group: 'organization' }, NOW);
  if (read.kind === 'invalid') throw new Error(read.reasons.join());
  const report = await reportUsage(client, 'pb:', read.query, NOW);
  expect([report.calls, report.attributed, report.unattributed]).toEqual([61, 30, 31]);
  expect(new Set(report.rows.map(({ organization }) => organization))).toEqual(
    new Set([...organizations, null]),
  );
  expect((await retireCheck(client, 'pb:', { days: 1, now: NOW })).callers).toHaveLength(30);
  await ledger.close();
});

test('on a cluster, the policy can be set, watched and cleared', async () => {
  const defaults = [{ deprecatedAt: NOW }];
  const watch = await watchPolicy(client, 'pb:', { defaults, log });
  const sunsetAt = Date.parse('2028-01-01');
  await changePolicy(client, 'pb:', setInLayer({ sunsetAt }), { defaults, now: NOW });
  await watch.refresh();
  expect(watch.current.policy.sunsetAt).toBe(sunsetAt);
  await changePolicy(client, 'pb:', clearLayer, { defaults, now: NOW });
  await watch.refresh();
  expect(watch.current.policy.sunsetAt).toBeUndefined();
  await watch.close();
});
