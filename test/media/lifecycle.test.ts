import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, test } from '@jest/globals';
import { createPictures, removeOrphans, trackPending } from '../../src/media/lifecycle.ts';
import { openMediaStore } from '../../src/media/open.ts';
import { MediaUnavailableError, type MediaStore } from '../../src/media/store.ts';
import { organizationBase, unreferencedPicturesKey } from '../../src/redis/keys.ts';
import { freshPrefix } from '../support/redis.ts';
import { storeTime } from '../../src/redis/connection/client.ts';
import { useTestStore } from '../support/use-store.ts';
import { redPng } from '../support/requests/pictures.ts';

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

test('thousands of files are removed, and those that cannot be stay listed', async () => {
  const files = Array.from({ length: 2500 }, (_, n) => `f${String(n).padStart(4, '0')}.png`);
  await list(Object.fromEntries(files.map((name, n) => [name, n + 1])));
  const stubborn = files.filter((_, n) => n % 500 === 3);
  const { error, removed } = await remove(stubborn);
  expect(error).toMatch(/^Error: f\d+.png stays$/);
  expect(removed).toHaveLength(2495);
  expect(await listed()).toEqual(stubborn);
});

test('nothing more is removed once the signal is aborted', async () => {
  await list({ 'old.png': 1 });
  expect(await remove([], AbortSignal.abort())).toEqual({ removed: [] });
  expect(await listed()).toEqual(['old.png']);
});

test('a file whose write has failed stays listed, as the write may still take effect', async () => {
  const media = await openMediaStore(undefined, {
    dataDir: await mkdtemp(path.join(tmpdir(), 'lifecycle-')),
  });
  const saved: string[] = [];
  const failing: MediaStore = {
    ...media,
    save: async (name, bytes) => {
      await media.save(name, bytes);
      saved.push(name);
      throw new MediaUnavailableError('no response in time');
    },
  };
  const pictures = createPictures(store, failing);
  await expect(pictures.store(base, 'sender', await redPng(), 1000)).rejects.toThrow('no response in time');
  expect(await listed()).toEqual(saved);
  await removeOrphans(store, base, media.remove);
  expect([await listed(), await media.open(saved[0] ?? '', 1)]).toEqual([[], undefined]);
});
