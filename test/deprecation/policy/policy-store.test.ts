import { EventEmitter, once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { createLog } from '../../../src/log.ts';
import { policyKey } from '../../../src/deprecation/ledger/keys.ts';
import {
  clearPolicy,
  readOperatorLayer,
  setPolicy,
  watchPolicy,
  type PolicyInForce,
} from '../../../src/deprecation/policy/policy-store.ts';
import { closeRedis, connectRedis, type RedisClient } from '../../../src/redis/connection/connect.ts';
import { freshPrefix, startRedis, testRedisUrl } from '../../support/redis.ts';

const NOW = Date.parse('2027-03-01T12:00:00Z');
const defaults = [{ deprecatedAt: Date.parse('2026-11-01T00:00:00Z') }];
const log = createLog('error');
let redis: RedisClient;

beforeAll(async () => {
  redis = await connectRedis(testRedisUrl(), { allowEviction: true, commandTimeout: 10_000 });
});
afterAll(() => closeRedis(redis));

describe('the policy in Redis', () => {
  test('binds every instance that watches it, without a restart', async () => {
    const prefix = freshPrefix();
    const instances = await Promise.all(
      [0, 1].map(async () => {
        const changes = new EventEmitter<{ change: [PolicyInForce] }>();
        const change = once(changes, 'change') as Promise<[PolicyInForce]>;
        const onChange = (inForce: PolicyInForce) => changes.emit('change', inForce);
        const watch = await watchPolicy(redis, prefix, { defaults, log, pollMs: 5, onChange });
        return { watch, change };
      }),
    );
    expect(instances.map(({ watch }) => watch.current().headers)).toEqual([
      ['Deprecation', '@1793491200'],
      ['Deprecation', '@1793491200'],
    ]);
    const flags = { sunset: '2027-06-01', successor: 'https://kv.example/' };
    expect(await setPolicy(redis, prefix, flags, { defaults, now: NOW })).toMatchObject({ version: 1 });
    for (const { watch, change } of instances) {
      const [seen] = await change;
      expect(seen).toBe(watch.current());
      expect(seen.headers.filter((_, i) => i % 2 === 0)).toEqual(['Deprecation', 'Sunset', 'Link']);
      await watch.close();
    }
  });

  test('keeps every change of operators who change it at once', async () => {
    const prefix = freshPrefix();
    const open = () => connectRedis(testRedisUrl(), { allowEviction: true, commandTimeout: 10_000 });
    const clients = await Promise.all(Array.from({ length: 4 }, open));
    const changes = clients.flatMap((client, c) =>
      Array.from({ length: 5 }, (_, i) =>
        setPolicy(
          client,
          prefix,
          { brownout: [`2027-04-${10 + c}T0${i}:00:00Z/PT30M`] },
          { defaults, now: NOW },
        ),
      ),
    );
    const outcomes = await Promise.all(changes);
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array(20).fill('changed'));
    const { layer, version } = await readOperatorLayer(redis, prefix);
    expect(layer.brownouts).toHaveLength(20);
    expect(version).toBe(20);
    await Promise.all(clients.map(closeRedis));
  });

  test('is not touched by a change that is refused', async () => {
    const prefix = freshPrefix();
    const refused = await setPolicy(redis, prefix, { sunset: '2020-01-01' }, { defaults, now: NOW });
    expect(refused).toMatchObject({ kind: 'refused' });
    expect(await redis.exists(policyKey(prefix))).toBe(0);
  });

  test('falls back to the defaults once cleared', async () => {
    const prefix = freshPrefix();
    await setPolicy(redis, prefix, { sunset: '2027-06-01' }, { defaults, now: NOW });
    const watch = await watchPolicy(redis, prefix, { defaults, log });
    expect(watch.current().policy.sunsetAt).toBe(Date.parse('2027-06-01'));
    await clearPolicy(redis, prefix, { sunset: true }, { defaults, now: NOW });
    await watch.refresh();
    expect(watch.current().policy.sunsetAt).toBeUndefined();
    await watch.close();
  });

  test('stays in force where something else is put in its place', async () => {
    const prefix = freshPrefix();
    await setPolicy(redis, prefix, { sunset: '2027-06-01' }, { defaults, now: NOW });
    const watch = await watchPolicy(redis, prefix, { defaults, log });
    await redis.set(policyKey(prefix), 'nonsense');
    await watch.refresh();
    expect(watch.current().policy.sunsetAt).toBe(Date.parse('2027-06-01'));
    await watch.close();
  });

  test('stays in force while Redis is away, and follows again once it is back', async () => {
    const server = await startRedis();
    const client = new Redis(server.url, { maxRetriesPerRequest: 0, retryStrategy: () => 10 });
    client.on('error', () => {});
    await setPolicy(client, 'pb:', { sunset: '2027-06-01' }, { defaults, now: NOW });
    const watch = await watchPolicy(client, 'pb:', { defaults, log });
    await server.stop();
    await watch.refresh();
    expect(watch.current().policy.sunsetAt).toBe(Date.parse('2027-06-01'));
    const again = await startRedis(['--port', String(server.port)]);
    await new Promise((resolve) => (client.status === 'ready' ? resolve(0) : client.once('ready', resolve)));
    await setPolicy(client, 'pb:', { sunset: '2027-07-01' }, { defaults, now: NOW });
    await watch.refresh();
    expect(watch.current().policy.sunsetAt).toBe(Date.parse('2027-07-01'));
    await watch.close();
    client.disconnect();
    await again.stop();
  });
});
