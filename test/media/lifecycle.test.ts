import { beforeEach, expect, test } from '@jest/globals';
import { removeOrphans, trackPending } from '../../src/media/lifecycle.ts';
import { organizationBase, unreferencedPicturesKey } from '../../src/redis/keys.ts';
import { freshPrefix } from '../support/redis.ts';
import { storeTime } from '../../src/redis/connection/client.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let base: string;
beforeEach(() => {
  base = organizationBase(freshPrefix(), 'acme');
});

/** Lists files as pending or orphaned since a time in ms. */
async function list(files: Record<string, number>): Promise<void> {
  for (const [file, since] of Object.entries(files)) {
    await store.zadd(unreferencedPicturesKey(base), since, file);
  }
}

const listed = () => store.zrange(unreferencedPicturesKey(base), '0', '-1');

async function remove(refused: readonly string[] = [], signal?: AbortSignal) {
  const removed: string[] = [];
  const removeFile = async (file: string): Promise<void> => {
    if (refused.includes(file)) throw new Error(`${file} stays`);
    removed.push(file);
  };
  const error = await removeOrphans(store, base, removeFile, signal).catch(String);
  return { error, removed };
}

test('files past their grace period are removed, and no others', async () => {
  await list({ 'old.png': 1, 'older.png': 0 });
  await trackPending(store, base, 'new.png', await storeTime(store));
  expect(await remove()).toEqual({ removed: ['older.png', 'old.png'] });
  expect(await listed()).toEqual(['new.png']);
});

test('a file that cannot be removed is reported and tried again, and does not prevent the removal of others', async () => {
  await list({ 'a1.png': 1, 'a2.png': 2, 'a3.png': 3 });
  expect(await remove(['a2.png'])).toEqual({ error: 'Error: a2.png stays', removed: ['a1.png', 'a3.png'] });
  expect(await listed()).toEqual(['a2.png']);
  expect(await remove()).toEqual({ removed: ['a2.png'] });
});

test('nothing more is removed once the signal is aborted', async () => {
  await list({ 'old.png': 1 });
  expect(await remove([], AbortSignal.abort())).toEqual({ removed: [] });
  expect(await listed()).toEqual(['old.png']);
});
