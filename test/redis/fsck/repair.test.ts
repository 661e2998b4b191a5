import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Repair } from '../../../src/redis/fsck/check.ts';
import { namesBucketKey, profileKey, settingsKey, stageKey, stageOwnerKey } from '../../../src/redis/keys.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';
import { newOrganization } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

const confirm = script<[sighting: string], string>('fsck/confirm');
const makeRepair = script<[repair: string], string>('fsck/repair');

const store = await useTestStore();
let base: string;
let bucket: string;
let indexing: Repair;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
  bucket = namesBucketKey(base, '0', '0');
  await store.hset(profileKey(base, 'ada'), { u: 'Ada', t: 1 });
  indexing = {
    generation: '0',
    expect: [
      ['Ada', 'hget', profileKey(base, 'ada'), 'u'],
      [false, 'holder', 'Ada'],
    ],
    claim: ['Ada', 'ada'],
    commands: [],
  };
});

const repair = async (what: Repair) => await makeRepair(store, base, JSON.stringify(what));

describe('a repair of the index of names', () => {
  test('is not made once another generation is in force, nor is the fault confirmed', async () => {
    await store.hset(settingsKey(base), 'index', '1');
    expect(await confirm(store, base, JSON.stringify(indexing))).toBe('changed');
    expect(await repair(indexing)).toBe('changed');
    expect(await store.exists(bucket)).toBe(0);
  });

  test('is not made while the index is rebuilt, which may have copied the part already', async () => {
    await store.set(`${base}reindex`, 'token 0');
    expect(await repair(indexing)).toBe('busy');
    expect(await store.exists(bucket)).toBe(0);
    await store.unlink(`${base}reindex`);
    expect(await repair(indexing)).toBe('repaired');
    expect(await store.hgetall(bucket)).toEqual({ Ada: 'ada' });
  });

  test('gives away no name that a denylist overwrite has yet to decide about', async () => {
    await store.hset(stageKey(base), 'Ada', '');
    await store.set(stageOwnerKey(base), 'overwrite');
    expect(await repair(indexing)).toBe('busy');
    expect(await store.exists(bucket)).toBe(0);
    await store.unlink(stageOwnerKey(base));
    expect(await repair(indexing)).toBe('repaired');
  });

  test('replaces a part of it that is a key of another type', async () => {
    await store.set(bucket, 'text');
    expect(await repair(indexing)).toBe('repaired');
    expect(await store.hgetall(bucket)).toEqual({ Ada: 'ada' });
  });
});

test('a repair of anything but names is made while the index is rebuilt', async () => {
  await store.set(`${base}reindex`, 'token 0');
  const key = profileKey(base, 'ada');
  expect(await repair({ expect: [['1', 'hget', key, 't']], commands: [['hset', key, 't', '2']] })).toBe(
    'repaired',
  );
  expect(await store.hget(key, 't')).toBe('2');
});
