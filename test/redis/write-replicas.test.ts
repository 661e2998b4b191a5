import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { setInLayer } from '../../src/deprecation/policy/policy-edits.ts';
import { changePolicy } from '../../src/deprecation/policy/policy-store.ts';
import { createReleasers } from '../../src/lib/releasers.ts';
import { createLog } from '../../src/log.ts';
import { openStore, openStoreForTool } from '../../src/redis/open.ts';
import { layoutKey, organizationBase } from '../../src/redis/keys.ts';
import { layoutVersion } from '../../src/redis/layout.ts';
import { revokeApiKey } from '../../src/redis/operator/api-keys.ts';
import { registerOrganization } from '../../src/redis/organizations.ts';
import { startBridge, type TestBridge } from '../support/bridge.ts';
import { startRedis, type RedisProcess } from '../support/redis.ts';
import { startStopwatch } from '../support/stopwatch.ts';
import { until } from '../support/until.ts';

let master: RedisProcess;
let replica: RedisProcess;
let bridge: TestBridge;
beforeAll(async () => {
  master = await startRedis();
  replica = await startRedis(['--replicaof', '127.0.0.1', String(master.port)]);
  const direct = new Redis(master.url);
  await direct.set('k', 'v');
  while ((await direct.wait(1, 1000)) < 1);
  direct.disconnect();
  bridge = await startBridge({ redisUrl: master.url, writeReplicas: 1 });
});
afterAll(async () => {
  await bridge.close();
  await Promise.all([master.stop(), replica.stop()]);
});

test('with WRITE_REPLICAS a write is answered once the replica has it, and 503 otherwise; reads go on', async () => {
  const organization = await bridge.newOrganization();
  const player = await organization.player('u1');
  const put = (username: string) => player.request('PUT', '/api/profile/', { json: { username } });
  expect((await put('ada')).status).toBe(200);
  const copy = new Redis(replica.url);
  expect(await copy.hget(`${organization.base}p:u1`, 'u')).toBe('ada');
  copy.disconnect();

  process.kill(replica.pid, 'SIGSTOP');
  try {
    const elapsed = startStopwatch();
    const [answer, read] = await Promise.all([put('bob'), player.request('GET', '/api/profile/')]);
    expect([answer.status, answer.body]).toMatchObject([503, { code: 'store-unavailable' }]);
    expect(elapsed()).toBeLessThan(3000);
    expect(read.status).toBe(200);
  } finally {
    process.kill(replica.pid, 'SIGCONT');
  }
  let status = 503;
  while (status === 503) ({ status } = await put('carol'));
  expect(status).toBe(200);
});

test('with WRITE_REPLICAS an organization is registered, and a policy stored, once the replica has it', async () => {
  const releasers = createReleasers();
  const store = await openStoreForTool(bridge.config, releasers);
  const edit = setInLayer({ successorUrl: 'https://kv.example/' });
  process.kill(replica.pid, 'SIGSTOP');
  try {
    await expect(registerOrganization(store, 'pb:', 'acme')).rejects.toThrow('NOREPLICAS');
    const change = changePolicy(store, 'pb:', edit, { defaults: [], now: Date.now() });
    await expect(change).rejects.toThrow('NOREPLICAS');
  } finally {
    process.kill(replica.pid, 'SIGCONT');
    await releasers.close();
  }
});

test('with WRITE_REPLICAS a warning about the store is logged once', async () => {
  const releasers = createReleasers();
  const warnings: string[] = [];
  const log = { warn: (message: string) => warnings.push(message) } as never;
  await openStore(bridge.config, releasers, log);
  await releasers.close();
  expect(warnings).toEqual([expect.stringContaining('no append-only file')]);
});

test('with WRITE_REPLICAS nothing is written any more once a newer version has changed the layout', async () => {
  const releasers = createReleasers();
  const keyPrefix = 'taken-over:';
  const { store } = await openStore({ ...bridge.config, keyPrefix }, releasers, createLog('error'));
  const write = () => revokeApiKey(store, organizationBase(keyPrefix, 'acme'), 'k_1');
  try {
    expect(await write()).toBe('unknown');
    await bridge.store.set(layoutKey(keyPrefix), `${layoutVersion + 1}`);
    await until(() => store.status === 'end');
    // The connection for such writes may have been lost already, or be closing.
    await expect(write()).rejects.toThrow(/Connection is closed|isn't writeable/);
  } finally {
    await releasers.close();
  }
});

test('with WRITE_REPLICAS /readyz says that writes are refused for want of a replica', async () => {
  const copy = new Redis(replica.url);
  const ready = async (): Promise<unknown> => (await fetch(`${bridge.url}/readyz`)).json();
  try {
    expect(await ready()).toEqual({ status: 'ok', degraded: [] });
    await copy.replicaof('NO', 'ONE');
    await until(async () => (await bridge.store.info('replication')).includes('connected_slaves:0'));
    expect(await ready()).toEqual({ status: 'degraded', degraded: ['store-read-only'] });
  } finally {
    await copy.replicaof('127.0.0.1', master.port);
    copy.disconnect();
  }
});
