import { beforeEach, describe, expect, test } from '@jest/globals';
import { organizationBase, replayKey, replayWaitingKey } from '../../src/redis/keys.ts';
import { putProfile } from '../../src/redis/profiles.ts';
import { createReplayListings, type ReplayListings } from '../../src/redis/replay-listings.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { freshPrefix } from '../support/redis.ts';
import { exploreListings, type Scenario } from './replay-listings.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
let base: string;
/** Of two instances: each knows what it listed itself. */
let one: ReplayListings;
let other: ReplayListings;
beforeEach(() => {
  prefix = freshPrefix();
  base = organizationBase(prefix, 'acme');
  one = createReplayListings(store, prefix);
  other = createReplayListings(store, prefix);
});

const fields = JSON.stringify({ key: 'k', role: 'player', user: 'ada', sealed: '', most: 10 });

async function queueBy(listings: ReplayListings): Promise<void> {
  const snapshot = await readWriteSnapshot(store, base, 'ada');
  const queued = { fields, listing: listings.of('acme') };
  const { kind } = await putProfile(store, base, 'ada', {}, { ...snapshot, queued });
  expect(kind).toBe('put');
}

const replayAll = async (): Promise<void> => void (await store.xtrim(replayKey(base), 'MAXLEN', 0));

describe('an organization', () => {
  test('is on the list before its first change is queued', async () => {
    const { renew } = one.of('acme');
    one.of('acme').renew = async (number) => {
      expect(await store.xlen(replayKey(base))).toBe(0);
      await renew(number);
    };
    await queueBy(one);
    expect(await one.all()).toEqual(['acme']);
    expect(await store.xlen(replayKey(base))).toBe(1);
  });

  test('stays on the list while something waits', async () => {
    await queueBy(one);
    expect(await other.close('acme')).toBe(false);
    expect(await one.all()).toEqual(['acme']);
  });

  test('leaves the list once nothing waits, and is listed again by any instance with the next change', async () => {
    await queueBy(one);
    for (const writer of [one, other, one]) {
      await replayAll();
      expect(await other.close('acme')).toBe(true);
      expect(await one.all()).toEqual([]);
      await queueBy(writer);
      expect(await one.all()).toEqual(['acme']);
    }
  });

  test('that was listed again is not removed by an instance that ends an earlier listing', async () => {
    await queueBy(one);
    await replayAll();
    // As if it had been held up before it took the organization off the list.
    await store.zadd(replayWaitingKey(prefix), 5, 'acme');
    expect(await one.close('acme')).toBe(true);
    expect(await one.all()).toEqual(['acme']);
  });

  test('keeps its higher number if a late call has a lower one', async () => {
    await store.zadd(replayWaitingKey(prefix), 5, 'acme');
    await one.of('acme').renew('3');
    expect(await store.zscore(replayWaitingKey(prefix), 'acme')).toBe('5');
  });

  test('is listed again after a failover has lost its listing', async () => {
    await queueBy(one);
    await store.del(replayWaitingKey(prefix));
    await other.restore('acme');
    await replayAll();
    expect(await other.all()).toEqual(['acme']);
    expect(await other.close('acme')).toBe(true);
    expect(await other.all()).toEqual([]);
  });
});

describe('whichever instance is killed or held up, and whichever reply is lost,', () => {
  const scenario: Scenario = { changes: 2, closings: 3 };

  test('no organization with waiting changes is missing from the list', () => {
    const { states, atRest, violation } = exploreListings(scenario);
    expect(violation).toBeUndefined();
    expect(atRest).toBeGreaterThan(10);
    expect(states).toBeGreaterThan(1000);
  });

  test.each<NonNullable<Scenario['mistake']>>([
    'queues-unlisted',
    'lowers-the-number',
    'removes-any-number',
    'does-not-count',
  ])('the exploration finds the mistake %s', (mistake) => {
    expect(exploreListings({ ...scenario, mistake }).violation?.rule).toContain('is not on the list');
  });
});
