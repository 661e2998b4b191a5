import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';
import { script } from '../../src/redis/connection/script-loader.ts';
import { organizationBase } from '../../src/redis/keys.ts';
import { startCluster, type RedisCluster } from '../support/servers/redis-cluster.ts';
import { openTestStore } from '../support/store.ts';

let cluster: RedisCluster;
let store: RedisClient;
beforeAll(async () => {
  cluster = await startCluster();
  store = await openTestStore(cluster.url);
});
afterAll(async () => {
  await closeRedis(store);
  await cluster.stop();
});

test('a script that is run for the first time, among other commands, gives no reply to the wrong caller', async () => {
  const base = organizationBase('pb:', 'acme');
  const readBacklog = script<[], [entries: number, setAside: number, oldest: string]>(
    'cutover/replay/backlog',
  );
  const replies = await Promise.allSettled([
    store.set(`${base}settings`, 'before'),
    readBacklog(store, base),
    store.get(`${base}settings`),
    store.strlen(`${base}settings`),
  ]);
  expect(replies).toMatchObject(['OK', [0, 0, ''], 'before', 6].map((value) => ({ value })));
});
