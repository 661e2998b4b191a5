import { beforeEach, describe, expect, test } from '@jest/globals';
import { organizationBase, organizationsKey, sweepKey } from '../../src/redis/keys.ts';
import { sweepOrganizations, type SweepJob } from '../../src/redis/sweep.ts';
import { freshPrefix } from '../support/redis.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
beforeEach(() => {
  prefix = freshPrefix();
});

const register = (...ids: string[]) => store.sadd(organizationsKey(prefix), ...ids);

/** Sweeps, and returns the bases that were visited. */
async function sweep(signal?: AbortSignal): Promise<string[]> {
  const visited: string[] = [];
  const visit: SweepJob = async (base) => visited.push(base);
  await sweepOrganizations(store, prefix, [visit], signal);
  return visited.sort();
}

describe('a sweep', () => {
  test('visits every organization once', async () => {
    const ids = Array.from({ length: 250 }, (_, n) => `{org} ${n}`);
    await register(...ids);
    expect(await sweep()).toEqual(ids.map((id) => organizationBase(prefix, id)).sort());
  });

  test('is made by one of several instances, and then by none for ten minutes', async () => {
    await register('a');
    const sweeps = await Promise.all([sweep(), sweep(), sweep()]);
    expect(sweeps.flat()).toEqual([organizationBase(prefix, 'a')]);

    expect(await sweep()).toEqual([]);
    const left = await store.pttl(sweepKey(prefix));
    expect(left).toBeGreaterThan(590_000);
    expect(left).toBeLessThanOrEqual(600_000);
    await store.del(sweepKey(prefix));
    expect(await sweep()).toEqual([organizationBase(prefix, 'a')]);
  });

  test('reports a job that fails, and still runs other jobs and visits other organizations', async () => {
    await register('a', 'b');
    const visited: string[] = [];
    const failing: SweepJob = async (base) => await store.zrange(base, '0', '-1');
    await store.set(organizationBase(prefix, 'a'), 'not a sorted set');
    const jobs: SweepJob[] = [failing, async (base) => visited.push(base)];
    await expect(sweepOrganizations(store, prefix, jobs)).rejects.toThrow('WRONGTYPE');
    expect(visited).toHaveLength(2);
  });

  test('ends early when it is aborted', async () => {
    await register('a');
    expect(await sweep(AbortSignal.abort())).toEqual([]);
  });
});
