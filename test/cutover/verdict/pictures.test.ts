import { beforeEach, expect, test } from '@jest/globals';
import {
  countLegacyPictures,
  readLegacyPictures,
  recountLegacyPictures,
} from '../../../src/cutover/verdict/pictures.ts';
import {
  cutoverKey,
  legacyPicturesDueKey,
  objectsKey,
  organizationBase,
  profileKey,
} from '../../../src/redis/keys.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
const { signal } = new AbortController();
const url = 'https://legacy.example/picture.png';
beforeEach(async () => {
  prefix = freshPrefix();
  await store.hset(cutoverKey(prefix), 'mode', 'mirror');
  const [acme, other] = [organizationBase(prefix, 'acme'), organizationBase(prefix, 'p:other')];
  await store.hset(profileKey(acme, 'shown'), { t: '', pu: url });
  await store.hset(profileKey(other, 'shown'), { t: '', pu: url });
  await store.hset(profileKey(acme, 'copied'), { t: '', pf: 'file.png', po: url });
  await store.hset(profileKey(acme, 'of the catalogue'), { t: '', pr: 'd\no', pu: url });
  await store.hset(profileKey(acme, 'none'), { t: '' });
  await store.hset(objectsKey(acme), { pu: url });
});

const counted = async () => (await readLegacyPictures(store, prefix))?.count;

test('pictures still at the URL of the legacy data are counted in all organizations', async () => {
  expect(await counted()).toBeUndefined();
  await countLegacyPictures(store, prefix, signal);
  expect(await counted()).toBe(2);
});

test('one process counts the pictures for all, and again once some were copied', async () => {
  await countLegacyPictures(store, prefix, signal);
  await store.hdel(profileKey(organizationBase(prefix, 'acme'), 'shown'), 'pu');
  await countLegacyPictures(store, prefix, signal);
  expect(await counted()).toBe(2);
  expect(await store.pttl(legacyPicturesDueKey(prefix))).toBeGreaterThan(0);
  await recountLegacyPictures(store, prefix);
  await countLegacyPictures(store, prefix, signal);
  expect(await counted()).toBe(1);
});

test('a process that stops while it counts the pictures leaves that to another one', async () => {
  const stopping = new AbortController();
  const counting = countLegacyPictures(store, prefix, stopping.signal);
  stopping.abort();
  await expect(counting).rejects.toThrow('aborted');
  expect(await counted()).toBeUndefined();
  expect(await store.exists(legacyPicturesDueKey(prefix))).toBe(0);
});

test('pictures are counted after the last step, too, while they can still be copied', async () => {
  await store.hset(cutoverKey(prefix), 'mode', 'native');
  await countLegacyPictures(store, prefix, signal);
  expect(await counted()).toBe(2);
});

test('pictures are not counted before accepted changes reach Redis, nor where no mode was ever set', async () => {
  await store.hset(cutoverKey(prefix), 'mode', 'shadow');
  await countLegacyPictures(store, prefix, signal);
  await store.del(cutoverKey(prefix));
  await countLegacyPictures(store, prefix, signal);
  expect(await counted()).toBeUndefined();
});
