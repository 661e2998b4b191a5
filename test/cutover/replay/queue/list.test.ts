import { beforeEach, describe, expect, test } from '@jest/globals';
import { createReplayQueue, type ReplayQueue } from '../../../../src/cutover/replay/queue/queue.ts';
import { registerOrganization } from '../../../../src/redis/organizations.ts';
import { organizationBase, replayKey, replayOrganizationsKey } from '../../../../src/redis/keys.ts';
import { readWriteSnapshot } from '../../../../src/redis/changes.ts';
import { putProfile } from '../../../../src/redis/profiles.ts';
import { freshPrefix } from '../../../support/redis.ts';
import { until } from '../../../support/until.ts';
import { useTestStore } from '../../../support/use-store.ts';
import { exploreList, type Scenario } from './list-model.ts';

const store = await useTestStore();
let prefix: string;
let base: string;
/** Of two instances. */
let one: ReplayQueue;
let other: ReplayQueue;
beforeEach(() => {
  prefix = freshPrefix();
  base = organizationBase(prefix, 'acme');
  one = createReplayQueue(store, prefix);
  other = createReplayQueue(store, prefix);
});

const fields = JSON.stringify({ key: 'k', role: 'player', user: 'ada', sealed: '', most: 10 });

async function queueBy(queue: ReplayQueue): Promise<void> {
  const snapshot = await readWriteSnapshot(store, base, 'ada');
  const queued = { fields, announce: () => void queue.announce('acme') };
  const { kind } = await putProfile(store, base, 'ada', {}, { ...snapshot, queued });
  expect(kind).toBe('put');
  await until(async () => (await queue.listed()).length > 0);
}

const listed = async (by: ReplayQueue): Promise<string[]> => (await by.listed()).map(([id]) => id);

const replayAll = async (): Promise<void> => void (await store.xtrim(replayKey(base), 'MAXLEN', 0));

describe('an organization', () => {
  test('stays on the list while something waits', async () => {
    await queueBy(one);
    await other.unlist('acme');
    expect(await listed(one)).toEqual(['acme']);
  });

  test('leaves the list once nothing waits, and is listed again by any instance with the next change', async () => {
    await queueBy(one);
    for (const writer of [one, other, one]) {
      await replayAll();
      await other.unlist('acme');
      expect(await listed(one)).toEqual([]);
      await queueBy(writer);
      expect(await listed(one)).toEqual(['acme']);
    }
  });

  test('is listed again after a failover has lost its listing', async () => {
    await registerOrganization(store, prefix, 'acme');
    await queueBy(one);
    await store.del(replayOrganizationsKey(prefix));
    await one.restoreList();
    expect(await listed(other)).toEqual(['acme']);
  });
});

describe('in whatever order the commands of instances come,', () => {
  const scenario: Scenario = { changes: 2, closings: 2 };

  test('no organization with waiting changes is missing from the list, and no change is unread, for good', () => {
    const { states, atRest, violation } = exploreList(scenario);
    expect(violation).toBeUndefined();
    expect(atRest).toBeGreaterThan(10);
    expect(states).toBeGreaterThan(500);
  });

  test.each<[NonNullable<Scenario['mistake']>, rule: string]>([
    ['announces-before', 'nobody learns of'],
    ['does-not-look-again', 'is not on the list'],
    ['reads-before', 'nobody learns of'],
    ['counts', 'nobody learns of'],
  ])('the exploration finds the mistake %s', (mistake, rule) => {
    expect(exploreList({ ...scenario, mistake }).violation?.rule).toContain(rule);
  });
});
