import { beforeEach, expect, test } from '@jest/globals';
import { denylistKey, objectsKey, profileKey, settingsKey } from '../../../src/redis/keys.ts';
import { dry, migrateProfiles, migratePrune, migrateRecords } from '../../../src/migration/engine/scripts.ts';
import { newOrganization } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

/** When the profile was adopted, and the denylist. */
const adoptedAt = 1_000_000;

const claim = 'r\n0\n1';

const store = await useTestStore();
let base: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
  await store.hset(profileKey(base, 'ada'), { pu: 'https://x/adopted.png', t: '', as: 7, at: adoptedAt });
  await store.hset(`${base}claims`, 'r', claim);
  await store.hset(`${base}cutover:adoptions`, 'denylist-at', adoptedAt);
});

/** Applies one profile of a source whose snapshot was opened at this time. */
async function applyProfile(snapshotAt: number | '', url: string): Promise<string | undefined> {
  const row = ['ada', '', '', '', 'pu', url, 't', '5000'];
  const reply = await migrateProfiles(
    store,
    base,
    0,
    '0',
    claim,
    JSON.stringify([row]),
    snapshotAt,
    0,
    1,
    '',
  );
  return reply[0] === 'applied' ? reply[1][0] : reply[0];
}

async function applyDenied(snapshotAt: number | ''): Promise<string | undefined> {
  const reply = await migrateRecords(store, base, 0, '0', claim, '[["x","x"]]', snapshotAt, 0, 'denylist');
  return reply[0] === 'applied' ? reply[1][0] : reply[0];
}

test('a profile adopted after the snapshot of a source began stays as it is', async () => {
  expect(await applyProfile(adoptedAt - 1, 'https://x/older.png')).toBe('kept');
  expect(await store.hget(profileKey(base, 'ada'), 'pu')).toBe('https://x/adopted.png');
  expect(await applyDenied(adoptedAt - 1)).toBe('kept');
});

test('a source of unknown age overwrites nothing that was adopted', async () => {
  expect(await applyProfile('', 'https://x/unknown.png')).toBe('kept');
  expect(await applyDenied('')).toBe('kept');
});

test('a snapshot that began after the adoption is applied, and later adoptions still count as newer', async () => {
  expect(await applyProfile(adoptedAt + 1, 'https://x/newer.png')).toBe('updated');
  expect(await store.hgetall(profileKey(base, 'ada'))).toEqual({
    pu: 'https://x/newer.png',
    t: '5000',
    as: '7',
    at: String(adoptedAt),
  });
  expect(await applyProfile(adoptedAt + 1, 'https://x/newer.png')).toBe('unchanged');
  expect(await applyDenied(adoptedAt + 1)).toBe('created');
});

test('marks and times that are no numbers count as 0', async () => {
  const profile = profileKey(base, 'ada');
  await store.hset(profile, 'b', 'x', 'at', 'y', 't', 'z');
  expect(await applyProfile(adoptedAt + 1, 'https://x/newer.png')).toBe('kept');
  await store.hdel(profile, 'b', 'as');
  expect(await applyProfile(adoptedAt + 1, 'https://x/newer.png')).toBe('updated');
});

test('a time of change that an adoption cannot know is not a difference', async () => {
  expect(await applyProfile(adoptedAt + 1, 'https://x/adopted.png')).toBe('unchanged');
});

test('an avatar URL that its reference leads to, by the catalogue or the template, is not a difference', async () => {
  const profile = profileKey(base, 'ada');
  const apply = async (url: string): Promise<string | undefined> => {
    const row = ['ada', '', '', '', 'ar', 'a b\nö!', 'au', url, 't', '5000'];
    const reply = await migrateProfiles(
      store,
      base,
      0,
      '0',
      dry,
      JSON.stringify([row]),
      adoptedAt + 1,
      0,
      1,
      '',
    );
    return reply[0] === 'applied' ? reply[1][0] : reply[0];
  };
  await store.hdel(profile, 'pu');
  await store.hset(profile, 'ar', 'a b\nö!');
  expect(await apply('https://x/a%20b/%C3%B6!.png')).toBe('updated');
  await store.hset(settingsKey(base), 'template', 'https://x/{datasourceId}/{objectDefinitionId}.png');
  expect(await apply('https://x/a%20b/%C3%B6!.png')).toBe('unchanged');
  expect(await apply('https://x/other.png')).toBe('updated');
  await store.hset(objectsKey(base), 'a b\nö!', 'https://x/listed.png');
  expect(await apply('https://x/listed.png')).toBe('unchanged');
  expect(await apply('https://x/a%20b/%C3%B6!.png')).toBe('updated');
});

test('a picture reference whose URL the source shows is not a difference, and stays', async () => {
  const profile = profileKey(base, 'ada');
  await store.hset(settingsKey(base), 'template', 'https://x/{datasourceId}/{objectDefinitionId}.png');
  await store.hdel(profile, 'pu');
  await store.hset(profile, 'pr', 'shop\nhat');
  expect(await applyProfile(adoptedAt + 1, 'https://x/shop/hat.png')).toBe('unchanged');
  await store.hset(profile, 'wu', '0x1');
  expect(await applyProfile(adoptedAt + 1, 'https://x/shop/hat.png')).toBe('updated');
  expect(await store.hgetall(profile)).toEqual({
    pr: 'shop\nhat',
    t: '5000',
    as: '7',
    at: String(adoptedAt),
  });
  expect(await applyProfile(adoptedAt + 1, 'https://x/shop/other.png')).toBe('updated');
  expect(await store.hmget(profile, 'pr', 'pu')).toEqual([null, 'https://x/shop/other.png']);
});

test('a user who was adopted before the snapshot is pruned; one adopted later, or maybe later, is not', async () => {
  const prune = (snapshotAt: number | '') =>
    migratePrune(store, base, 0, '0', claim, '[["ada","",""]]', snapshotAt, 0, 'profiles');
  expect(await prune(adoptedAt)).toEqual(['pruned', ['kept']]);
  expect(await prune('')).toEqual(['pruned', ['kept']]);
  expect(await prune(adoptedAt + 1)).toEqual(['pruned', ['removed']]);
  expect(await store.exists(profileKey(base, 'ada'))).toBe(0);
});

test('names that were denied after the snapshot are not pruned; those denied before are', async () => {
  await store.hset(denylistKey(base, '0'), 'root', '');
  const prune = (snapshotAt: number | '') =>
    migratePrune(store, base, 0, '0', claim, '[["root"]]', snapshotAt, 0, 'denylist');
  expect(await prune(adoptedAt - 1)).toEqual(['pruned', ['kept']]);
  expect(await prune('')).toEqual(['pruned', ['kept']]);
  expect(await prune(adoptedAt + 1)).toEqual(['pruned', ['removed']]);
});
