import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReplayQueue } from '../../src/cutover/replay/queue/queue.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { cutoverKey, profileKey } from '../../src/redis/keys.ts';
import { startLegacy, type Legacy } from '../support/legacy/legacy.ts';
import { openTestStore, startBridge, type TestBridge, type TestOrganization } from '../support/bridge.ts';
import { createClient, type Client } from '../support/requests/client.ts';
import { freshPrefix } from '../support/redis.ts';
import { startCluster, type RedisCluster } from '../support/servers/redis-cluster.ts';
import { until } from '../support/until.ts';

let cluster: RedisCluster;
let legacy: Legacy;
let bridge: TestBridge;
let players: { organization: TestOrganization; client: Client; accepted: Set<string> }[];

beforeAll(async () => {
  cluster = await startCluster({ replicas: true });
  legacy = await startLegacy();
  const keyPrefix = freshPrefix();
  const store = await openTestStore(cluster.url);
  await store.hset(cutoverKey(keyPrefix), { mode: 'reverse', epoch: 1, since: Date.now(), by: 'test' });
  await closeRedis(store);
  bridge = await startBridge({
    redisTimeouts: {},
    redisUrl: cluster.url,
    keyPrefix,
    legacyBaseUrl: legacy.url,
    legacyTimeout: 1000,
    replaySecret: 's'.repeat(32),
  });
  players = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      const organization = await bridge.newOrganization({}, `city-${n}`);
      const { apiKey } = await organization.newKey({ role: 'player', userId: 'u1' });
      legacy.addKey(apiKey, { organization: organization.id, role: 'player', user: 'u1' });
      const client = createClient(bridge.url, { organization: organization.id, apiKey });
      return { organization, client, accepted: new Set<string>() };
    }),
  );
});
afterAll(async () => {
  await bridge.close();
  await legacy.close();
  await cluster.stop();
});

test('a replay goes on from the replica of a killed master, and both sides are equal in the end', async () => {
  const stopping = new AbortController();
  const writing = players.map(async ({ client, accepted }) => {
    for (let n = 0; !stopping.signal.aborted; n++) {
      const { status } = await client.request('PUT', '/api/profile/', { json: { username: `name ${n}` } });
      if (status === 200) accepted.add(`name ${n}`);
      await sleep(50);
    }
  });
  const replayed = (): boolean =>
    players.every(({ organization }) => legacy.organization(organization.id).profiles.has('u1'));
  await until(replayed);
  const [first] = cluster.masters;
  process.kill(first?.pid ?? 0, 'SIGKILL');
  const before = players.map(({ accepted }) => accepted.size);
  // Those of the killed master, too, once its replica has taken over.
  await until(() => players.every(({ accepted }, n) => accepted.size > (before[n] ?? 0) + 3));
  stopping.abort();
  await Promise.all(writing);

  // A connection of its own: one that slept through the failover still knows the dead master.
  const store = await openTestStore(cluster.url);
  const queue = createReplayQueue(store, bridge.config.keyPrefix);
  await until(async () => (await queue.state()).entries === 0);
  for (const { organization } of players) {
    const here = await store.hget(profileKey(organization.base, 'u1'), 'u');
    expect(legacy.organization(organization.id).profiles.get('u1')?.username).toBe(here);
    expect(await queue.listSetAside(organization.id)).toEqual([]);
  }
  await closeRedis(store);
  const direct = new Redis(cluster.replicas[0]?.url ?? '');
  expect(await direct.info('replication')).toContain('role:master');
  direct.disconnect();
});
