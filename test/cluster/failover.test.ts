import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { fsck } from '../../src/redis/fsck/fsck.ts';
import { startBridge, type TestBridge } from '../support/bridge.ts';
import { createClient } from '../support/requests/client.ts';
import { openTestStore } from '../support/store.ts';
import { startCluster, type RedisCluster } from '../support/servers/redis-cluster.ts';
import { startTraffic, type Traffic } from './traffic.ts';
import { until } from '../support/until.ts';

let cluster: RedisCluster;
let bridge: TestBridge;
let traffic: Traffic;

beforeAll(async () => {
  cluster = await startCluster({ replicas: true });
  bridge = await startBridge({ redisUrl: cluster.url, redisTimeouts: {} });
  traffic = await startTraffic(bridge, 30);
});
afterAll(async () => {
  await traffic.stop();
  await bridge.close();
  await cluster.stop();
});

async function ready(): Promise<[number, unknown]> {
  const { status, body } = await createClient(bridge.url).request('GET', '/readyz');
  return [status, body];
}

test('while a killed master is replaced, its organizations get 503 and the others notice nothing', async () => {
  const [first] = cluster.masters;
  if (first === undefined) throw new Error('no master');
  const direct = new Redis(first.url);
  const slots = await Promise.all(
    traffic.callers.map(({ organization }) => direct.cluster('KEYSLOT', organization.base)),
  );
  direct.disconnect();
  const ofKilled = traffic.callers.filter((_, index) => Number(slots[index]) <= 5460);
  const others = traffic.callers.filter((caller) => !ofKilled.includes(caller));
  expect([ofKilled.length > 3, others.length > 3]).toEqual([true, true]);
  expect(await ready()).toEqual([200, { status: 'ok', degraded: [] }]);

  // What is acknowledged now has reached the replica: replication is asynchronous, a failover may lose the rest.
  await traffic.pause();
  await replicated(cluster);
  traffic.reset();
  process.kill(first.pid, 'SIGKILL');
  const degraded = untilDegraded();
  traffic.resume();
  await until(() => ofKilled.some(({ statuses }) => statuses.has(503)));
  // Asked all the time: the replica may take over at the moment of the first 503.
  expect(await degraded).toEqual([200, { status: 'degraded', degraded: ['store-partly-unavailable'] }]);
  await until(() => ofKilled.every(({ statuses }) => statuses.has(200)));
  await traffic.turn();

  expect(traffic.callers.flatMap(({ wrong }) => wrong)).toEqual([]);
  expect(others.filter(({ statuses }) => statuses.has(503))).toEqual([]);
  expect(Math.max(...others.map(({ slowest }) => slowest))).toBeLessThan(10_000);

  traffic.reset();
  await traffic.turn();
  expect(traffic.callers.filter(({ statuses }) => statuses.has(503))).toEqual([]);
  expect(await ready()).toEqual([200, { status: 'ok', degraded: [] }]);
  // A connection of its own, as the tool has one: one that slept through the failover still knows the dead master.
  const operator = await openTestStore(cluster.url);
  const checked = await fsck(operator, bridge.config.keyPrefix, { repair: false, onFault: () => {} });
  await closeRedis(operator);
  expect(checked).toMatchObject({ found: 0, counts: { organizations: 30, profiles: 30, usernames: 30 } });
});

async function untilDegraded(): ReturnType<typeof ready> {
  for (;;) {
    const [status, body] = await ready();
    if ((body as { status: string }).status !== 'ok') return [status, body];
  }
}

/** Resolves once every replica has all that its master has. */
async function replicated({ masters }: RedisCluster): Promise<void> {
  for (const { url } of masters) {
    const master = new Redis(url);
    // One write, so that there is something to wait for.
    expect(await master.wait(1, 5000)).toBe(1);
    master.disconnect();
  }
}
