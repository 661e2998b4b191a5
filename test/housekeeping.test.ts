import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { readConfig } from '../src/config.ts';
import { startHousekeeping } from '../src/housekeeping.ts';
import { createReleasers } from '../src/lib/releasers.ts';
import { createLog } from '../src/log.ts';
import { closeRedis } from '../src/redis/connection/connect.ts';
import { organizationsKey, stageKey, sweepKey, unreferencedPicturesKey } from '../src/redis/keys.ts';
import type { Resources } from '../src/resources.ts';
import { newOrganization, openTestStore } from './support/store.ts';
import { startRedis } from './support/redis.ts';
import { until } from './support/until.ts';
import { useTestStore } from './support/use-store.ts';

const store = await useTestStore();

test('a permission that the user of Redis has lost is logged by its name, once each time', async () => {
  const redis = await startRedis();
  const operator = new Redis(redis.url);
  const allow = async (right: string) =>
    await operator.call('ACL', 'SETUSER', 'bridge', 'on', '>secret', '~*', '+@all', right);
  await allow('+eval');
  const own = await openTestStore(redis.url.replace('://', '://bridge:secret@'));
  const warnings: string[] = [];
  const log = Object.assign(createLog('error'), {
    warn: (what: string, { reason }: { reason: string }) => warnings.push(`${what}: ${reason}`),
  });
  const releasers = createReleasers();
  const config = readConfig({});
  startHousekeeping({ config, log, releasers, store: own } as unknown as Resources, 1);
  /** How many times the permissions have been checked: nothing else waits for replicas. */
  const checks = async (): Promise<number> =>
    Number(/^cmdstat_wait:calls=(\d+)/m.exec(await operator.info('commandstats'))?.[1] ?? 0);
  const checkedAgain = async (): Promise<void> => {
    const seen = await checks();
    await until(async () => (await checks()) > seen + 2);
  };
  for (let time = 0; time < 2; time++) {
    await checkedAgain();
    await allow('-eval');
    await checkedAgain();
    expect(warnings.splice(0)).toEqual([
      expect.stringMatching(/^the permissions in Redis are no longer enough: .* may not run eval: /),
    ]);
    await allow('+eval');
  }
  await releasers.close();
  await closeRedis(own);
  operator.disconnect();
  await redis.stop();
});

test('housekeeping goes on after a job that fails, which is logged with its reason, until it is closed', async () => {
  const { base, prefix } = await newOrganization(store);
  await store.zadd(unreferencedPicturesKey(base), 1, 'orphan.webp');
  await store.hset(stageKey(base), 'abandoned', '');
  const warnings: unknown[] = [];
  const log = Object.assign(createLog('error'), {
    warn: (...warning: unknown[]) => warnings.push(warning),
  });
  const releasers = createReleasers();
  const remove = () => Promise.reject(new Error('the bucket is away'));
  const config = readConfig({ KEY_PREFIX: prefix });
  startHousekeeping({ config, log, releasers, store, media: { remove } } as unknown as Resources, 5);
  await until(() => warnings.length > 0);
  expect(warnings).toEqual([
    [
      'orphaned picture files or abandoned denylists could not be removed',
      { reason: 'Error: the bucket is away' },
    ],
  ]);
  expect(await store.exists(stageKey(base))).toBe(0);
  await releasers.close();
  await store.del(sweepKey(prefix));
  await sleep(50);
  expect(await store.exists(sweepKey(prefix))).toBe(0);
  expect(await store.smembers(organizationsKey(prefix))).toHaveLength(1);
});
