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
  const mark = script<[id: string, sender: string, known: string], string>('cutover/replay/mark');
  const replies = await Promise.allSettled([
    store.set(`${base}settings`, 'before'),
    mark(store, base, '1-1', 'one', ''),
    store.get(`${base}settings`),
    store.strlen(`${base}settings`),
  ]);
  expect(replies).toMatchObject(['OK', '', 'before', 6].map((value) => ({ value })));
});
