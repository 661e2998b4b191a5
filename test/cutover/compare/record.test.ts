import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createFindings, type Findings } from '../../../src/cutover/compare/findings.ts';
import type { Log } from '../../../src/log.ts';
import { storeTime } from '../../../src/redis/connection/client.ts';
import {
  comparisonsKey,
  differingUsersKey,
  failedAdoptionsKey,
  forwardedOrganizationsKey,
  gapsKey,
  organizationBase,
  profileKey,
  refusedKeysKey,
  settingsKey,
  unmappedKeysKey,
} from '../../../src/redis/keys.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
const log = { warn: () => {}, info: () => {} } as unknown as Log;

let prefix: string;
let base: string;
let findings: Findings;
beforeEach(() => {
  prefix = freshPrefix();
  base = organizationBase(prefix, 'acme');
  findings = createFindings(store, prefix, log);
});
afterEach(() => findings.close());

const differs = (since: number, userId: string) =>
  findings.recordComparison('acme', since, { kind: 'different', userId, fields: ['username'] });
const matches = (since: number, userId: string) =>
  findings.recordComparison('acme', since, { kind: 'same', userId });
const differing = async () => (await store.hkeys(differingUsersKey(base))).sort();
const counted = async (name: string) => await store.hget(comparisonsKey(base), name);

test('comparisons of a mode add up', async () => {
  for (const userId of ['ada', 'bob']) {
    differs(2000, userId);
    await findings.flush();
  }
  expect(await counted('different')).toBe('2');
  expect(await differing()).toEqual(['ada', 'bob']);
});

test('a comparison of an earlier mode is not recorded', async () => {
  differs(2000, 'ada');
  await findings.flush();
  matches(1000, 'ada');
  differs(1000, 'bob');
  await findings.flush();
  expect(await store.hmget(comparisonsKey(base), 'since', 'same', 'different')).toEqual(['2000', null, '1']);
  expect(await differing()).toEqual(['ada']);
});

test('with the first comparison of a mode, those of the one before are forgotten', async () => {
  differs(2000, 'ada');
  await findings.flush();
  matches(3000, 'bob');
  await findings.flush();
  expect(await store.hmget(comparisonsKey(base), 'since', 'same', 'different')).toEqual(['3000', '1', null]);
  expect(await differing()).toEqual([]);
});

test('a user who matches neither differs nor failed to be adopted', async () => {
  await store.hset(differingUsersKey(base), { ada: '{}', bob: '{}' });
  await store.hset(failedAdoptionsKey(base), { ada: '{}', bob: '{}' });
  await store.hset(comparisonsKey(base), 'since', 2000);
  matches(2000, 'ada');
  await findings.flush();
  expect(await differing()).toEqual(['bob']);
  expect(await store.hkeys(failedAdoptionsKey(base))).toEqual(['bob']);
});

test('counts by the hour are kept for two days', async () => {
  const hour = Math.floor((await storeTime(store)) / 3_600_000);
  await store.hset(comparisonsKey(base), {
    since: 2000,
    [`hour:${hour - 46}:same`]: 5,
    [`hour:${hour - 49}:different`]: 6,
  });
  matches(2000, 'ada');
  await findings.flush();
  expect(await counted(`hour:${hour - 46}:same`)).toBe('5');
  expect(await counted(`hour:${hour - 49}:different`)).toBeNull();
});

test('a failed adoption is on record unless the same or a later one was made since', async () => {
  await store.hset(profileKey(base, 'repaired'), 'as', 8);
  await store.hset(profileKey(base, 'failing'), 'as', 6);
  for (const userId of ['repaired', 'failing']) findings.recordFailedAdoption('acme', userId, 8, 'overtaken');
  await findings.flush();
  expect(await store.hkeys(failedAdoptionsKey(base))).toEqual(['failing']);
});

test('a gap that is noted again keeps its first time and the latest end, and is counted', async () => {
  const later = (await storeTime(store)) + 3_600_000;
  await store.hset(gapsKey(base), 'unknown-key', JSON.stringify({ count: 2, first: 1000, last: later }));
  findings.recordGap('acme', 'unknown-key', 0);
  await findings.flush();
  expect(JSON.parse((await store.hget(gapsKey(base), 'unknown-key')) ?? '')).toEqual({
    count: 3,
    first: 1000,
    last: later,
  });
});

test('a gap lasts for as long as the change may still take effect', async () => {
  const before = await storeTime(store);
  findings.recordGap('acme', 'unmarked-change', 60_000);
  await findings.flush();
  const gap = JSON.parse((await store.hget(gapsKey(base), 'unmarked-change')) ?? '') as { last: number };
  expect(gap.last).toBeGreaterThanOrEqual(before + 60_000);
});

test('a gap noted by an instance whose clock is ahead begins by the clock of the store', async () => {
  const ahead = Date.now() + 3_600_000;
  const clock = jest.spyOn(Date, 'now').mockReturnValue(ahead);
  findings.recordGap('acme', 'unmarked-change', 0);
  clock.mockRestore();
  await findings.flush();
  const gap = JSON.parse((await store.hget(gapsKey(base), 'unmarked-change')) ?? '') as { first: number };
  expect(gap.first).toBeLessThan(ahead - 1_800_000);
});

const judged = (sha256: string, status: number, here: string) =>
  findings.judgeKey({ organizationId: 'acme', sha256, userAgent: 'new' }, status, here);

test('an API key that both accept is on neither list any more', async () => {
  for (const key of [unmappedKeysKey(base), refusedKeysKey(base)]) {
    await store.hset(key, { one: '{}', other: '{}' });
  }
  judged('one', 200, 'player');
  await findings.flush();
  expect(await store.hkeys(unmappedKeysKey(base))).toEqual(['other']);
  expect(await store.hkeys(refusedKeysKey(base))).toEqual(['other']);
});

const judgedForDenylist = (sha256: string, status: number, here: string) =>
  findings.judgeKey({ organizationId: 'acme', sha256, userAgent: 'new' }, status, here, false);

test('a key of no user that is refused here for a profile stays listed although it may change the denylist', async () => {
  judged('earlier', 200, 'no-user');
  await findings.flush();
  judged('one', 200, 'no-user');
  for (const key of ['earlier', 'one']) judgedForDenylist(key, 200, 'no-user');
  await findings.flush();
  expect((await store.hkeys(unmappedKeysKey(base))).sort()).toEqual(['earlier', 'one']);
});

test('a key of no user that both accept for the denylist is on neither list any more', async () => {
  judgedForDenylist('imported-since', 200, 'unknown');
  judgedForDenylist('accepted-since', 401, 'no-user');
  await findings.flush();
  expect(await store.hkeys(unmappedKeysKey(base))).toEqual(['imported-since']);
  expect(await store.hkeys(refusedKeysKey(base))).toEqual(['accepted-since']);
  for (const key of ['imported-since', 'accepted-since']) judgedForDenylist(key, 200, 'no-user');
  await findings.flush();
  expect(await store.exists(unmappedKeysKey(base), refusedKeysKey(base))).toBe(0);
});

test('a key that the legacy service accepts is no longer listed as one that only Redis accepts', async () => {
  await store.hset(refusedKeysKey(base), 'one', '{}');
  judged('one', 200, 'no-user');
  await findings.flush();
  expect(await store.exists(refusedKeysKey(base))).toBe(0);
  expect(await store.hkeys(unmappedKeysKey(base))).toEqual(['one']);
});

test.each([
  ['a read of the own profile with a key of a user', 'profile', ['one']],
  ['a read of a user who has no profile here', 'none', ['one']],
  ['a read with a key of no user', 'no-user', []],
  ['a change, which may be refused for another reason,', 'known', []],
])('%s that is answered 403 shows whether the legacy service refuses the key', async (_, here, refused) => {
  judged('one', 403, here);
  await findings.flush();
  expect(await store.hkeys(refusedKeysKey(base))).toEqual(refused);
});

test('a key that is refused again is no longer marked as one that the source has', async () => {
  const earlier = { userAgent: '', at: 1000, status: 403, isInSource: true };
  await store.hset(refusedKeysKey(base), 'one', JSON.stringify(earlier));
  const before = await storeTime(store);
  judged('one', 403, 'profile');
  await findings.flush();
  const entry = JSON.parse((await store.hget(refusedKeysKey(base), 'one')) ?? '') as { at: number };
  expect(entry).toEqual({ userAgent: 'new', at: expect.any(Number), isForUser: true, status: 403 });
  expect(entry.at).toBeGreaterThanOrEqual(before);
});

test('a key that the legacy service answers 404 is listed only if its organization exists here', async () => {
  judged('made-up', 404, 'unknown');
  await findings.flush();
  expect(await store.exists(unmappedKeysKey(base))).toBe(0);
  expect(await store.smembers(forwardedOrganizationsKey(prefix))).toEqual([]);
  await store.hset(settingsKey(base), { min: '1' });
  judged('known-there', 404, 'unknown');
  await findings.flush();
  expect(await store.hkeys(unmappedKeysKey(base))).toEqual(['known-there']);
});

test('of a thousand API keys that Redis does not have, no more are listed, and those are kept up to date', async () => {
  const many = Array.from({ length: 1000 }, (_, n) => [`key-${n}`, '{}']).flat();
  await store.hset(unmappedKeysKey(base), ...many);
  judged('key-7', 200, 'unknown');
  judged('one-more', 200, 'unknown');
  await findings.flush();
  expect(await store.hget(unmappedKeysKey(base), 'key-7')).toContain('"userAgent":"new"');
  expect(await store.hlen(unmappedKeysKey(base))).toBe(1000);
});
