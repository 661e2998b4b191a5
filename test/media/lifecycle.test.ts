import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import {
  unreferencedPicturesKey,
  organizationBase,
  organizationsKey,
  sweepKey,
} from '../../src/redis/keys.ts';
import { trackPending, sweepOrphans } from '../../src/media/lifecycle.ts';
import type { Store } from '../../src/redis/scripts.ts';
import { freshPrefix } from '../support/redis.ts';
import { openTestStore } from '../support/store.ts';

let store: Store;
let prefix: string;
beforeAll(async () => {
  store = await openTestStore();
});
beforeEach(() => {
  prefix = freshPrefix();
});
afterAll(() => closeRedis(store));

/** An organization with these files, pending or orphaned since a time in ms. */
async function newOrganization(id: string, files: Record<string, number>): Promise<string> {
  await store.sadd(organizationsKey(prefix), id);
  const base = organizationBase(prefix, id);
  for (const [file, since] of Object.entries(files))
    await store.zadd(unreferencedPicturesKey(base), since, file);
  return base;
}

async function sweep(refused: readonly string[] = [], signal?: AbortSignal) {
  const removed: string[] = [];
  const remove = async (file: string): Promise<void> => {
    if (refused.includes(file)) throw new Error(`${file} stays`);
    removed.push(file);
  };
  const outcome = await sweepOrphans(store, prefix, remove, signal).catch(String);
  return { outcome, removed: removed.sort() };
}

test('a sweep removes the files that are past their grace period, in every organization, and no others', async () => {
  const old = Array.from({ length: 250 }, (_, n) => `old-${String(n).padStart(3, '0')}.png`);
  await Promise.all(old.map((file, n) => newOrganization(`{org} ${n}`, { [file]: 1 })));
  const base = await newOrganization('with both', { 'older.png': 2 });
  await trackPending(store, base, 'new.png');
  expect(await sweep()).toEqual({ outcome: 251, removed: [...old, 'older.png'] });
  expect(await store.zrangebyscore(unreferencedPicturesKey(base), '-inf', '+inf')).toEqual(['new.png']);
});

test('of several instances one sweeps, and then none for ten minutes', async () => {
  await newOrganization('a', { 'a.png': 1 });
  const sweeps = await Promise.all([sweep(), sweep(), sweep()]);
  expect(sweeps.flatMap(({ removed }) => removed)).toEqual(['a.png']);

  await newOrganization('b', { 'b.png': 1 });
  expect(await sweep()).toEqual({ outcome: 0, removed: [] });
  const left = await store.pttl(sweepKey(prefix));
  expect(left).toBeGreaterThan(590_000);
  expect(left).toBeLessThanOrEqual(600_000);
  await store.del(sweepKey(prefix));
  expect(await sweep()).toEqual({ outcome: 1, removed: ['b.png'] });
});

test('a file that cannot be removed is reported, does not keep others from it, and is tried again', async () => {
  const base = await newOrganization('a', { 'a1.png': 1, 'a2.png': 2, 'a3.png': 3 });
  await newOrganization('b', { 'b.png': 1 });
  expect(await sweep(['a2.png'])).toEqual({
    outcome: 'Error: a2.png stays',
    removed: ['a1.png', 'a3.png', 'b.png'],
  });
  expect(await store.zrangebyscore(unreferencedPicturesKey(base), '-inf', '+inf')).toEqual(['a2.png']);
  await store.del(sweepKey(prefix));
  expect(await sweep()).toEqual({ outcome: 1, removed: ['a2.png'] });
});

test('a key of the wrong type in one organization does not keep others from being swept', async () => {
  await store.set(unreferencedPicturesKey(await newOrganization('a', {})), 'no set');
  await newOrganization('b', { 'b.png': 1 });
  expect(await sweep()).toMatchObject({
    outcome: expect.stringContaining('WRONGTYPE'),
    removed: ['b.png'],
  });
});

test('a sweep ends early when it is aborted', async () => {
  await Promise.all(Array.from({ length: 200 }, (_, n) => newOrganization(`org-${n}`, { [`${n}.png`]: 1 })));
  const { removed } = await sweep([], AbortSignal.abort());
  expect(removed.length).toBeLessThan(200);
});
