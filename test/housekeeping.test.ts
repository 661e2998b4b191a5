import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { readConfig } from '../src/config.ts';
import { startHousekeeping } from '../src/housekeeping.ts';
import { createReleasers } from '../src/lib/releasers.ts';
import { createLog } from '../src/log.ts';
import { organizationsKey, stageKey, sweepKey, unreferencedPicturesKey } from '../src/redis/keys.ts';
import type { Resources } from '../src/resources.ts';
import { newOrganization } from './support/store.ts';
import { until } from './support/until.ts';
import { useTestStore } from './support/use-store.ts';

const store = await useTestStore();

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
