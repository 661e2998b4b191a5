import { beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { fsck, type FaultKind } from '../../src/redis/fsck/fsck.ts';
import { putProfile } from '../../src/redis/profiles.ts';
import { changeComparison } from '../../src/redis/reindex/reindex.ts';
import { readWriteSnapshot, type WriteSnapshot } from '../../src/redis/changes.ts';
import { newOrganization } from '../support/store.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
let base: string;
let snapshot: WriteSnapshot;
beforeEach(async () => {
  ({ prefix, base } = await newOrganization(store));
  snapshot = await readWriteSnapshot(store, base);
});

/** Gives users names, many at once; returns the outcome of each. */
const claim = (pairs: readonly (readonly [user: string, name: string, current?: string])[]) =>
  Promise.all(
    pairs.map(
      async ([user, username, current]) =>
        (await putProfile(store, base, user, { username }, { ...snapshot, username: current })).kind,
    ),
  );

const crowd = (count: number) => Array.from({ length: count }, (_, n) => [`u${n}`, `player-${n}`] as const);

const faults = async (repair = false): Promise<FaultKind[]> => {
  const found: FaultKind[] = [];
  await fsck(store, prefix, { repair, onFault: ({ kind }) => found.push(kind) });
  return found;
};

const bucketCount = async (generation = '0') =>
  Number((await store.hget(`${base}settings`, `n${generation}`)) ?? 1);

async function buckets(): Promise<{ size: number; encoding: unknown }[]> {
  return await Promise.all(
    Array.from({ length: await bucketCount() }, async (_, number) => ({
      size: await store.hlen(`${base}n0:${number}`),
      encoding: await store.object('ENCODING', `${base}n0:${number}`),
    })),
  );
}

describe('the index of names', () => {
  test('grows by small buckets in the compact encoding, as names come in', async () => {
    expect(new Set(await claim(crowd(3000)))).toEqual(new Set(['put']));
    const found = await buckets();
    expect(found.reduce((sum, { size }) => sum + size, 0)).toBe(3000);
    expect(found.length).toBeGreaterThan(3000 / 64);
    expect(found.length).toBeLessThan(3000 / 16);
    expect(Math.max(...found.map(({ size }) => size))).toBeLessThan(128);
    expect(new Set(found.map(({ encoding }) => encoding))).toEqual(new Set(['listpack']));
  });

  test('loses no name as it grows, and gives none to two users', async () => {
    await claim(crowd(1000));
    expect(new Set(await claim(crowd(1000).map(([user, name]) => [`other-${user}`, name])))).toEqual(
      new Set(['taken']),
    );
    // Everybody moves on by one, the last first: each name has become free just before.
    const moved = crowd(1000).map(([user], n) => [user, `player-${n + 1}`, `player-${n}`] as const);
    expect(new Set(await claim(moved.toReversed()))).toEqual(new Set(['put']));
    expect(await claim([['new', 'player-0']])).toEqual(['put']);
    expect(await faults()).toEqual([]);
  });

  test('gives every name to one user, whatever the names are', async () => {
    const anyName = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter(isName);
    const names = fc.uniqueArray(anyName, {
      selector: (name) => name.normalize('NFC'),
      minLength: 100,
      maxLength: 300,
      size: 'max',
    });
    await fc.assert(
      fc.asyncProperty(names, async (list) => {
        ({ prefix, base } = await newOrganization(store));
        const outcomes = await claim(list.map((name, n) => [`u${n}`, name]));
        expect(outcomes).toEqual(list.map(() => 'put'));
        expect(await claim(list.map((name) => ['late', name]))).toEqual(list.map(() => 'taken'));
        expect(await bucketCount()).toBeGreaterThan(1);
        expect(await faults()).toEqual([]);
      }),
      { numRuns: 10 },
    );
  });

  test('is rebuilt with as many buckets, and the old ones are removed', async () => {
    await claim(crowd(1000));
    const before = await bucketCount();
    expect(await changeComparison(store, base, 'case-insensitive')).toMatchObject({ usernames: 1000 });
    expect(await bucketCount('1')).toBeGreaterThanOrEqual(before);
    expect(await store.hexists(`${base}settings`, 'n0')).toBe(0);
    expect(await faults()).toEqual([]);
    snapshot = await readWriteSnapshot(store, base);
    expect(await claim([['late', 'PLAYER-999']])).toEqual(['taken']);
  });

  test('is repaired if the number of its buckets is lost', async () => {
    await claim(crowd(5000));
    await store.hdel(`${base}settings`, 'n0');
    expect(new Set(await faults())).toEqual(new Set(['username-not-indexed', 'index-entry-stale']));
    await faults(true);
    expect(await faults()).toEqual([]);
    expect(new Set(await claim(crowd(5000).map(([, name]) => ['late', name])))).toEqual(new Set(['taken']));
  });

  test('takes a name even if a key of another type is in the way of the next bucket', async () => {
    await store.set(`${base}n0:1`, 'text');
    expect(new Set(await claim(crowd(200)))).toEqual(new Set(['put']));
    expect(await bucketCount()).toBe(1);
    await store.unlink(`${base}n0:1`);
    await claim(crowd(300).slice(200));
    expect(await bucketCount()).toBeGreaterThan(1);
    expect(await faults()).toEqual([]);
  });
});

function isName(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}
