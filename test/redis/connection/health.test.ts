import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { closeRedis, connectRedis } from '../../../src/redis/connection/connect.ts';
import { checkHealth } from '../../../src/redis/connection/health.ts';
import { startCluster, type RedisCluster } from '../../support/servers/redis-cluster.ts';
import { until } from '../../support/until.ts';

let cluster: RedisCluster;
let client: RedisClient;
beforeAll(async () => {
  cluster = await startCluster();
  client = await connectRedis(cluster.url);
});
afterAll(async () => {
  await closeRedis(client);
  await cluster.stop();
});

/** In slot 12706, which the killed master did not have. */
const keyElsewhere = 'k1';

/** By default a whole cluster refuses everything while one of its slots has no master. */
async function requireFullCoverage(value: 'yes' | 'no'): Promise<void> {
  for (const { url } of cluster.masters.slice(1)) {
    const master = new Redis(url);
    await master.config('SET', 'cluster-require-full-coverage', value);
    master.disconnect();
  }
}

test('a cluster that lost a master is readable, unless it refuses everything for that', async () => {
  expect(await checkHealth(client)).toEqual({ isReadable: true, faults: [] });
  await requireFullCoverage('yes');
  process.kill(cluster.masters[0]?.pid ?? 0, 'SIGKILL');
  await until(async () => (await client.get(keyElsewhere).catch(String))?.includes('CLUSTERDOWN') === true);
  expect(await checkHealth(client)).toEqual({ isReadable: false, faults: ['store-unavailable'] });
  await requireFullCoverage('no');
  await until(async () => (await checkHealth(client)).isReadable);
  expect((await checkHealth(client)).faults).toEqual(['store-partly-unavailable']);
});
