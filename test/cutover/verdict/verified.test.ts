import { beforeEach, describe, expect, test } from '@jest/globals';
import { readCutover } from '../../../src/cutover/switch/registry.ts';
import { readState } from '../../../src/cutover/verdict/evidence.ts';
import { recordVerified } from '../../../src/cutover/verdict/verified.ts';
import { replicationIdsOf, storeTime } from '../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';
import {
  apiKeyKey,
  denylistKey,
  differingUsersKey,
  failedAdoptionsKey,
  forwardedOrganizationsKey,
  gapsKey,
  lostNamesKey,
  organizationBase,
  refusedKeysKey,
  unsettledKey,
} from '../../../src/redis/keys.ts';
import { freshPrefix, startRedis } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

const clearVerified = script<[what: string, cursor: string, openedAt: number], string>(
  'cutover/clear_verified',
);

const store = await useTestStore();

test("a clean verify is dated by its snapshot, on the store's clock", async () => {
  const prefix = freshPrefix();
  await store.hset(`${prefix}cutover`, 'mode', 'mirror');
  const { now: before } = await readCutover(store, prefix);
  await recordVerified(store, prefix, {
    snapshotAt: (await storeTime(store)) - 5000,
    replicationIds: '',
    hasConflicts: false,
  });
  const { verifiedAt = 0, now: after } = await readCutover(store, prefix);
  expect(verifiedAt).toBeGreaterThanOrEqual(before - 5001);
  expect(verifiedAt).toBeLessThanOrEqual(after - 5000);
});

test('a clean verify does not count once another server has taken over, which may lack the last changes', async () => {
  const redis = await startRedis();
  const own = await openTestStore(redis.url);
  const prefix = freshPrefix();
  await own.hset(`${prefix}cutover`, 'mode', 'mirror');
  await recordVerified(own, prefix, {
    snapshotAt: await storeTime(own),
    replicationIds: await replicationIdsOf(own),
    hasConflicts: false,
  });
  expect(await readState(own, prefix)).toMatchObject({ hasFailedOver: false });
  // As a replica that is promoted.
  await own.replicaof('127.0.0.1', '1');
  await own.replicaof('NO', 'ONE');
  expect(await readState(own, prefix)).toMatchObject({ hasFailedOver: true });
  // Without a verify, since Redis became the authority.
  await own.del(`${prefix}cutover`);
  await own.hset(`${prefix}cutover`, { mode: 'reverse', 'switched-on': 'before the last server' });
  expect(await readState(own, prefix)).toMatchObject({ hasFailedOver: true });
  await own.hset(`${prefix}cutover`, 'switched-on', await replicationIdsOf(own));
  expect(await readState(own, prefix)).toMatchObject({ hasFailedOver: false });
  await closeRedis(own);
  await redis.stop();
});

test('a clean verify writes nothing if there is no cut-over', async () => {
  const prefix = freshPrefix();
  await recordVerified(store, prefix, {
    snapshotAt: (await storeTime(store)) - 5000,
    replicationIds: '',
    hasConflicts: false,
  });
  expect(await store.exists(`${prefix}cutover`)).toBe(0);
});

describe('what is on record of an organization', () => {
  let prefix: string;
  let base: string;
  /** Puts something on record from an hour ago under `old`, and something from just now under `new`. */
  beforeEach(async () => {
    prefix = freshPrefix();
    base = organizationBase(prefix, 'acme');
    await store.hset(`${prefix}cutover`, 'mode', 'mirror');
    await store.sadd(forwardedOrganizationsKey(prefix), 'acme');
    const now = (await readCutover(store, prefix)).now;
    for (const [name, at] of [
      ['old', now - 3_600_000],
      ['new', now],
    ] as const) {
      await store.hset(unsettledKey(base), name, `7:${at}`);
      await store.hset(differingUsersKey(base), name, JSON.stringify({ fields: ['username'], at }));
      await store.hset(failedAdoptionsKey(base), name, JSON.stringify({ reason: 'overtaken', at }));
      await store.hset(lostNamesKey(base), name, `${at}\nada\nother`);
      await store.hset(gapsKey(base), name, JSON.stringify({ count: 1, first: at, last: at }));
    }
    await store.hset(unsettledKey(base), {
      both: `8:${now - 3_600_000} 9:${now}`,
      '': `6:${now - 3_600_000}`,
    });
    await store.hset(gapsKey(base), 'both', JSON.stringify({ count: 2, first: now - 3_600_000, last: now }));
  });

  const left = async (): Promise<string[][]> =>
    await Promise.all(
      [unsettledKey, differingUsersKey, failedAdoptionsKey, lostNamesKey, gapsKey].map(async (keyOf) =>
        (await store.hkeys(keyOf(base))).sort(),
      ),
    );

  test('a clean verify removes what is older than its snapshot, and nothing else', async () => {
    await recordVerified(store, prefix, {
      snapshotAt: (await storeTime(store)) - 60_000,
      replicationIds: '',
      hasConflicts: false,
    });
    expect(await left()).toEqual([['both', 'new'], ['new'], ['new'], ['new'], ['both', 'new']]);
    expect(await store.hget(unsettledKey(base), 'both')).toMatch(/^9:\d+$/);
  });

  test('a clean verify with API keys marks those answered 403 before its snapshot, unless they were created here', async () => {
    const now = await storeTime(store);
    const [before, after] = [now - 3_600_000, now];
    await store.hset(refusedKeysKey(base), {
      old: JSON.stringify({ userAgent: '', at: before, status: 403 }),
      late: JSON.stringify({ userAgent: '', at: after, status: 403 }),
      unauthorized: JSON.stringify({ userAgent: '', at: before, status: 401 }),
      local: JSON.stringify({ userAgent: '', at: before, status: 403 }),
    });
    for (const sha256 of ['old', 'late', 'unauthorized']) await store.hset(apiKeyKey(base, sha256), 'i', 'k');
    await store.hset(apiKeyKey(base, 'local'), { i: 'k', b: 1 });
    const marked = async () =>
      Object.entries(await store.hgetall(refusedKeysKey(base)))
        .filter(([, entry]) => (JSON.parse(entry) as { isInSource?: boolean }).isInSource)
        .map(([sha256]) => sha256);
    const verified = { snapshotAt: now - 60_000, replicationIds: '', hasConflicts: false };
    await recordVerified(store, prefix, { ...verified, hasApiKeys: false });
    expect(await marked()).toEqual([]);
    await recordVerified(store, prefix, { ...verified, hasApiKeys: true });
    expect(await marked()).toEqual(['old']);
    expect(await store.hlen(refusedKeysKey(base))).toBe(4);
  });

  test('a clean verify forgets which bans were adopted before its snapshot, and nothing else of that', async () => {
    const now = await storeTime(store);
    const key = `${base}cutover:adoptions`;
    await store.hset(denylistKey(base, '0'), { old: '', new: '' });
    await store.hset(key, { drawn: 3, barrier: 2, 'denylist-at': 1000, 'name:old': 1000, 'name:new': now });
    await store.hset(key, 'name:removed', 1000);
    await recordVerified(store, prefix, {
      snapshotAt: now - 60_000,
      replicationIds: '',
      hasConflicts: false,
    });
    expect((await store.hkeys(key)).sort()).toEqual([
      'bans-at',
      'barrier',
      'denylist-at',
      'drawn',
      'name:new',
      'name:removed',
      'settled-due',
    ]);
  });

  test.each([
    ['none', undefined, 2000],
    ['one made before', 1500, 2000],
    ['one made later', 2500, 2500],
  ])(
    'the latest mark of a ban that a clean verify removes counts for all denied names: there was %s',
    async (_what, bansAt, expected) => {
      const key = `${base}cutover:adoptions`;
      await store.hset(denylistKey(base, '0'), { a: '', b: '', c: '', late: '' });
      if (bansAt !== undefined) await store.hset(key, 'bans-at', bansAt);
      await store.hset(key, { 'name:a': 1000, 'name:b': 2000, 'name:c': 1200, 'name:late': 4000 });
      await clearVerified(store, base, 'denied-names', '0', 3000);
      expect(await store.hgetall(key)).toEqual({ 'bans-at': String(expected), 'name:late': '4000' });
    },
  );

  test('a verify that accepted name conflicts keeps the users who lost their names', async () => {
    await recordVerified(store, prefix, {
      snapshotAt: (await storeTime(store)) - 60_000,
      replicationIds: '',
      hasConflicts: true,
    });
    expect(await left()).toEqual([['both', 'new'], ['new'], ['new'], ['new', 'old'], ['both', 'new']]);
  });

  test('a clean verify removes thousands of marks, and keeps thousands', async () => {
    const users = (kind: string): string[] => Array.from({ length: 2500 }, (_, n) => `${kind}-${n}`);
    const later = (await readCutover(store, prefix)).now;
    await store.hset(unsettledKey(base), ...users('settled').flatMap((user) => [user, '5:1000']));
    await store.hset(unsettledKey(base), ...users('later').flatMap((user) => [user, `5:${later}`]));
    await recordVerified(store, prefix, {
      snapshotAt: (await storeTime(store)) - 60_000,
      replicationIds: '',
      hasConflicts: false,
    });
    expect((await left())[0]).toEqual(['both', 'new', ...users('later')].sort());
  });

  test('a clean verify keeps what was recorded at the very moment of its snapshot', async () => {
    await store.hset(failedAdoptionsKey(base), {
      before: JSON.stringify({ reason: 'overtaken', at: 999 }),
      'at that moment': JSON.stringify({ reason: 'overtaken', at: 1000 }),
    });
    await clearVerified(store, base, 'failed', '0', 1000);
    expect((await left())[2]).toEqual(['at that moment', 'new', 'old']);
  });

  test('a clean verify removes the marks of changes that were due by its snapshot', async () => {
    await store.hset(unsettledKey(base), { due: '1:1000:1', later: '2:1001:1' });
    await clearVerified(store, base, 'unsettled', '0', 1000);
    expect((await left())[0]).toEqual(['', 'both', 'later', 'new', 'old']);
  });
});
