import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { createLog } from '../../../src/log.ts';
import { policyKey } from '../../../src/deprecation/ledger/keys.ts';
import { clearInLayer, clearLayer, setInLayer } from '../../../src/deprecation/policy/policy-edits.ts';
import {
  changePolicy,
  invalidPolicy,
  readOperatorLayer,
  watchPolicy,
} from '../../../src/deprecation/policy/policy-store.ts';
import type { PolicyLayer } from '../../../src/deprecation/policy/policy.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { freshPrefix, startRedis } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';
import { openTestStore } from '../../support/store.ts';

const NOW = Date.parse('2027-03-01T12:00:00Z');
const defaults = [{ deprecatedAt: Date.parse('2026-11-01T00:00:00Z') }];
const log = createLog('error');
const JUNE = Date.parse('2027-06-01');
const set = (client: RedisClient, prefix: string, layer: PolicyLayer) =>
  changePolicy(client, prefix, setInLayer(layer), { defaults, now: NOW });
const redis = await useTestStore();

describe('the policy in Redis', () => {
  test('takes effect on every instance without a restart', async () => {
    const prefix = freshPrefix();
    const instances = await Promise.all([0, 1].map(() => watchPolicy(redis, prefix, { defaults, log })));
    for (const { current } of instances) expect(current.headers).toEqual(['Deprecation', '@1793491200']);
    const given = { sunsetAt: JUNE, successorUrl: 'https://kv.example/' };
    expect(await set(redis, prefix, given)).toMatchObject({ kind: 'changed', version: 1 });
    for (const watch of instances) {
      while (watch.current.policy.sunsetAt === undefined) await setImmediate();
      const names = watch.current.headers.filter((_, i) => i % 2 === 0);
      expect(names).toEqual(['Deprecation', 'Sunset', 'Link']);
      await watch.close();
    }
  });

  test('keeps the changes of all operators who change it at the same time', async () => {
    const prefix = freshPrefix();
    const clients = await Promise.all(Array.from({ length: 4 }, () => openTestStore()));
    const changes = clients.flatMap((client, c) =>
      Array.from({ length: 5 }, (_, i) =>
        set(client, prefix, { brownouts: [{ start: JUNE + 10 * c + i, end: JUNE + 10 * c + i + 1 }] }),
      ),
    );
    const outcomes = await Promise.all(changes);
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array(20).fill('changed'));
    const stored = await readOperatorLayer(redis, prefix);
    expect(stored?.layer.brownouts).toHaveLength(20);
    expect(stored?.version).toBe(20);
    await Promise.all(clients.map(closeRedis));
  });

  test('is not touched by a refused change', async () => {
    const prefix = freshPrefix();
    const refused = await set(redis, prefix, { sunsetAt: Date.parse('2020-01-01') });
    expect(refused).toMatchObject({ kind: 'refused' });
    expect(await redis.exists(policyKey(prefix))).toBe(0);
  });

  test('is warned about once if it contradicts the defaults, and again when it changes', async () => {
    const prefix = freshPrefix();
    const warnings: unknown[] = [];
    const noting = { warn: (...warning: unknown[]) => warnings.push(warning) } as never;
    await set(redis, prefix, { sunsetAt: JUNE });
    const later = [{ deprecatedAt: Date.parse('2027-07-01'), sunsetAt: Date.parse('2028-01-01') }];
    const watch = await watchPolicy(redis, prefix, { defaults: later, log: noting });
    await watch.refresh();
    const reason = 'the sunset (2027-06-01T00:00:00Z) is before the deprecation (2027-07-01T00:00:00Z)';
    const warning = [expect.stringContaining('admin deprecation show'), { reason }];
    expect(warnings).toEqual([warning]);
    await set(redis, prefix, { afterSunset: 'gone' });
    await watch.refresh();
    expect(warnings).toEqual([warning, warning]);
    await changePolicy(redis, prefix, clearLayer, { defaults, now: NOW });
    await watch.refresh();
    expect(warnings).toHaveLength(2);
    await watch.close();
  });

  test('falls back to the defaults once cleared', async () => {
    const prefix = freshPrefix();
    await set(redis, prefix, { sunsetAt: JUNE });
    const watch = await watchPolicy(redis, prefix, { defaults, log });
    expect(watch.current.policy.sunsetAt).toBe(JUNE);
    await changePolicy(redis, prefix, clearInLayer({ settings: ['sunsetAt'] }), { defaults, now: NOW });
    await watch.refresh();
    expect(watch.current.policy.sunsetAt).toBeUndefined();
    await watch.close();
  });

  test.each(['nonsense', ''])(
    'stays in force if something invalid is stored in its place: "%s"',
    async (text) => {
      const prefix = freshPrefix();
      await set(redis, prefix, { sunsetAt: JUNE });
      const watch = await watchPolicy(redis, prefix, { defaults, log });
      await redis.set(policyKey(prefix), text);
      await watch.refresh();
      expect(watch.current.policy.sunsetAt).toBe(JUNE);
      expect(await set(redis, prefix, { sunsetAt: JUNE })).toEqual({
        kind: 'refused',
        reasons: [invalidPolicy],
      });
      const cleared = await changePolicy(redis, prefix, clearLayer, { defaults, now: NOW });
      expect(cleared).toMatchObject({ kind: 'changed', version: 1 });
      await watch.close();
    },
  );

  test('stays in force while Redis is unavailable, and is read again afterwards', async () => {
    const server = await startRedis();
    const client = new Redis(server.url, { maxRetriesPerRequest: 0, retryStrategy: () => 10 });
    client.on('error', () => {});
    await set(client, 'pb:', { sunsetAt: JUNE });
    const watch = await watchPolicy(client, 'pb:', { defaults, log });
    await server.stop();
    await watch.refresh();
    expect(watch.current.policy.sunsetAt).toBe(JUNE);
    const again = await startRedis(['--port', String(server.port)]);
    await new Promise((resolve) => (client.status === 'ready' ? resolve(0) : client.once('ready', resolve)));
    await set(client, 'pb:', { sunsetAt: Date.parse('2027-07-01') });
    await watch.refresh();
    expect(watch.current.policy.sunsetAt).toBe(Date.parse('2027-07-01'));
    await watch.close();
    client.disconnect();
    await again.stop();
  });
});
