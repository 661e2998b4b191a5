import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { waitForReplicas } from '../../../src/redis/connection/script-loader.ts';
import { replayOrganizationsKey } from '../../../src/redis/keys.ts';
import { startRedis, type RedisProcess } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';
import { until } from '../../support/until.ts';
import { openReplaying, organizationId, type Replaying } from './replaying.ts';

let master: RedisProcess;
let replica: RedisProcess;
let clients: RedisClient[];
let here: Replaying;
beforeAll(async () => {
  master = await startRedis();
  replica = await startRedis(['--replicaof', '127.0.0.1', String(master.port)]);
  clients = [await openTestStore(master.url), await openTestStore(master.url)];
  const [store, connection] = clients as [RedisClient, RedisClient];
  await store.set('k', 'v');
  while ((await store.wait(1, 1000)) < 1);
  waitForReplicas(store, { connection, count: 1 });
  here = await openReplaying(store);
});
afterAll(async () => {
  await here.close();
  await Promise.all(clients.map(closeRedis));
  await Promise.all([master.stop(), replica.stop()]);
});

/** The different requests that the legacy service has got since: one without a response in time is sent again. */
const sent = (): string[] => [...new Set(here.legacy.received.splice(0).map(({ body }) => body.toString()))];

test('an organization with waiting changes is found even if a failover lost its listing', async () => {
  await here.put('ada', 'Ada');
  await (clients[0] as RedisClient).del(replayOrganizationsKey(here.prefix));
  const replayer = here.start('one');
  await until(async () => (await here.waiting()) === 0);
  expect(sent()).toEqual(['{"username":"Ada"}']);
  await replayer.close();
});

test('with WRITE_REPLICAS no change is replayed until a replica has recorded its sender', async () => {
  await here.put('bob', 'Bob');
  process.kill(replica.pid, 'SIGSTOP');
  try {
    const [entry] = await here.queue.read(organizationId, 1);
    await expect(here.queue.mark(organizationId, entry?.id ?? '', 'one')).rejects.toThrow('NOREPLICAS');
    const replayer = here.start('two');
    await until(
      async () => (await here.queue.read(organizationId, 1))[0]?.sender?.startsWith('two/') ?? false,
    );
    expect(here.legacy.received).toEqual([]);
    process.kill(replica.pid, 'SIGCONT');
    await until(async () => (await here.waiting()) === 0);
    expect(sent()).toEqual(['{"username":"Bob"}']);
    await replayer.close();
  } finally {
    process.kill(replica.pid, 'SIGCONT');
  }
});
