import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { startBridge, type TestBridge } from '../support/bridge.ts';
import { startRedis, type RedisProcess } from '../support/redis.ts';
import { startSentinels } from '../support/servers/sentinels.ts';
import { startTraffic, type Traffic } from './traffic.ts';
import { until } from '../support/until.ts';

let master: RedisProcess;
let replica: RedisProcess;
let sentinels: RedisProcess[];
let bridge: TestBridge;
let traffic: Traffic;

beforeAll(async () => {
  master = await startRedis();
  replica = await startRedis(['--replicaof', '127.0.0.1', String(master.port)]);
  sentinels = await startSentinels(master);
  const url = `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/main`;
  bridge = await startBridge({ redisUrl: url, redisTimeouts: {} });
  traffic = await startTraffic(bridge, 5);
});
afterAll(async () => {
  await traffic.stop();
  await bridge.close();
  await Promise.all([...sentinels, replica, master].map((one) => one.stop()));
});

test('behind sentinels, a killed master means 503 only until its replica is promoted', async () => {
  await traffic.turn();
  await traffic.pause();
  const direct = new Redis(master.url);
  await direct.set('marker', '1');
  // What is acknowledged now has reached the replica: the rest a failover may lose.
  expect(await direct.wait(1, 5000)).toBe(1);
  direct.disconnect();
  traffic.reset();
  process.kill(master.pid, 'SIGKILL');
  traffic.resume();
  await until(() => traffic.callers.every(({ statuses }) => statuses.has(503)));
  await until(() => traffic.callers.every(({ statuses }) => statuses.has(200)));
  expect(traffic.callers.flatMap(({ wrong }) => wrong)).toEqual([]);
  expect(Math.max(...traffic.callers.map(({ slowest }) => slowest))).toBeLessThan(10_000);

  traffic.reset();
  await traffic.turn();
  expect(traffic.callers.filter(({ statuses }) => statuses.has(503))).toEqual([]);
  const promoted = new Redis(replica.url);
  expect(await promoted.role()).toContain('master');
  expect(await promoted.get('marker')).toBe('1');
  promoted.disconnect();
});
