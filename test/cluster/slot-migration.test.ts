import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { fsck } from '../../src/redis/fsck/fsck.ts';
import { startBridge, type TestBridge } from '../support/bridge.ts';
import { startCluster, type RedisCluster } from '../support/servers/redis-cluster.ts';
import type { RedisProcess } from '../support/redis.ts';
import { startTraffic, type Caller, type Traffic } from './traffic.ts';

let cluster: RedisCluster;
let bridge: TestBridge;
let traffic: Traffic;
let nodes: Redis[];

beforeAll(async () => {
  cluster = await startCluster();
  nodes = cluster.masters.map(({ url }) => new Redis(url));
  bridge = await startBridge({ redisUrl: cluster.url });
  traffic = await startTraffic(bridge, 40);
});
afterAll(async () => {
  await traffic.stop();
  await bridge.close();
  for (const node of nodes) node.disconnect();
  await cluster.stop();
});

const wrongAnswers = () => traffic.callers.flatMap(({ wrong }) => wrong);

async function slotOf({ organization }: Caller): Promise<number> {
  return await at(nodes, 0).cluster('KEYSLOT', organization.base);
}

function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new Error(`nothing at ${index}`);
  return item;
}

test('many organizations are served from all nodes under load', async () => {
  const slots = await Promise.all(traffic.callers.map(slotOf));
  const owners = new Set(slots.map((slot) => Math.min(2, Math.floor(slot / 5461))));
  expect(owners.size).toBe(3);
  traffic.reset();
  await traffic.turn();
  expect(wrongAnswers()).toEqual([]);
  expect(traffic.callers.filter(({ statuses }) => statuses.has(503))).toEqual([]);
});

test('a slot moves step by step to a node without scripts: no wrong answer, and 503 for its organizations only', async () => {
  const caller = at(traffic.callers, 7);
  const others = traffic.callers.filter((one) => one !== caller);
  const slot = await slotOf(caller);
  const from = Math.min(2, Math.floor(slot / 5461));
  const to = (from + 1) % 3;
  const ids = await Promise.all(nodes.map((node) => node.cluster('MYID')));
  traffic.reset();

  await forgetScripts();
  await at(nodes, to).cluster('SETSLOT', slot, 'IMPORTING', String(ids[from]));
  await at(nodes, from).cluster('SETSLOT', slot, 'MIGRATING', String(ids[to]));
  await traffic.turn();
  await moveKeys(slot, at(nodes, from), at(cluster.masters, to));
  for (const index of [to, from, 3 - to - from]) {
    await at(nodes, index).cluster('SETSLOT', slot, 'NODE', String(ids[to]));
    await forgetScripts();
    await traffic.turn();
  }
  expect(wrongAnswers()).toEqual([]);
  expect(Math.max(...traffic.callers.map(({ slowest }) => slowest))).toBeLessThan(10_000);
  expect(others.filter(({ statuses }) => statuses.has(503))).toEqual([]);

  traffic.reset();
  await traffic.turn();
  expect(traffic.callers.filter(({ statuses }) => statuses.has(503))).toEqual([]);
  expect(await at(nodes, from).cluster('COUNTKEYSINSLOT', slot)).toBe(0);
  const checked = await fsck(bridge.store, bridge.config.keyPrefix, { repair: false, onFault: () => {} });
  expect(checked).toMatchObject({ found: 0, counts: { organizations: 40, profiles: 40, usernames: 40 } });
});

/** What a redirected command meets on a node that has just joined. */
async function forgetScripts(): Promise<void> {
  await Promise.all(nodes.map((node) => node.script('FLUSH')));
}

/** As `redis-cli --cluster reshard` does it, one key at a time and under load. */
async function moveKeys(slot: number, from: Redis, { host, port }: RedisProcess): Promise<void> {
  for (;;) {
    const [key] = await from.cluster('GETKEYSINSLOT', slot, 1);
    if (key === undefined) return;
    await from.call('migrate', host, String(port), key, '0', '5000');
    await traffic.turn();
  }
}
