import { beforeEach, describe, expect, test } from '@jest/globals';
import { cutoverRaiseEpoch } from '../../../src/cutover/switch/registry.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import {
  migrateClaim,
  migrateFinishLoad,
  migrateLoad,
  migrateProfiles,
  migrateRollBack,
} from '../../../src/migration/engine/scripts.ts';
import { runKey } from '../../../src/migration/runs/runs.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';
import {
  claimsKey,
  loadingKey,
  namesBucketKey,
  organizationBase,
  profileKey,
  settingsKey,
} from '../../../src/redis/keys.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { freshPrefix } from '../../support/redis.ts';
import { keysOf } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

const changeRun = script<[claim: string, action: string, state: string], 'done'>('migration/run/state');
const drawToken = script<[], number>('migration/run/draw_token');

/** Claims of three applies of one run, one after the other, and of another run. */
const [first, second, third, other] = ['r\n0\n9', 'r\n0\n10', 'r\n0\n11', 'other\n0\n10'] as const;
const takenOver = /^TAKENOVER /;

const store = await useTestStore();
let prefix: string;
let base: string;
beforeEach(() => {
  prefix = freshPrefix();
  base = organizationBase(prefix, 'acme');
});

const stored = async (user: string) => await store.hgetall(profileKey(base, user));
const load = async (claim: string, kind: 'profiles' | 'names', ...rows: string[][]) =>
  await migrateLoad(store, base, claim, kind, JSON.stringify(rows.flatMap((row) => [row.length, ...row])));
const finish = async (claim: string, ...settings: string[]) =>
  await migrateFinishLoad(store, base, 3, '', claim, 2, ...settings);

test('the token of an apply is higher than all before, also where a clock was ahead', async () => {
  const key = `${prefix}migration:token`;
  const before = await drawToken(store, key);
  expect(before).toBeGreaterThan(1_700_000_000_000);
  await store.set(key, '9000000000000');
  expect([await drawToken(store, key), await drawToken(store, key)]).toEqual([9000000000001, 9000000000002]);
});

describe('a claim of an organization', () => {
  beforeEach(async () => {
    await saveSettings(store, prefix, 'acme', defaultSettings);
  });

  test('is refused to an apply once a later one of its run has it', async () => {
    for (const claim of [first, second, second]) {
      expect(await migrateClaim(store, base, claim, 'claim')).toEqual(['exists']);
    }
    await expect(migrateClaim(store, base, first, 'claim')).rejects.toThrow(takenOver);
    expect(await migrateClaim(store, base, 'another\n0\n1', 'claim')).toEqual(['exists']);
    expect(await store.hgetall(claimsKey(base))).toEqual({ r: second, another: 'another\n0\n1' });
  });

  test('ends what an earlier apply of the run may write', async () => {
    const rows = JSON.stringify([['ada', '', '', '', 't', '1']]);
    const write = async (claim: string) =>
      await migrateProfiles(store, base, 0, '0', claim, rows, '', 0, 1, '');
    await expect(write(first)).rejects.toThrow(takenOver);
    await migrateClaim(store, base, first, 'claim');
    await migrateClaim(store, base, other, 'claim');
    expect(await write(first)).toEqual(['applied', ['created'], [], []]);
    await migrateClaim(store, base, second, 'claim');
    await expect(write(first)).rejects.toThrow(takenOver);
  });

  test('begins no load of one that exists', async () => {
    expect(await migrateClaim(store, base, first, 'load')).toEqual(['exists']);
    expect(await store.exists(loadingKey(base))).toBe(0);
  });
});

test('a claim of an organization that does not exist is none, unless it is to be loaded', async () => {
  expect(await migrateClaim(store, base, first, 'claim')).toEqual(['absent']);
  expect(await keysOf(store, prefix)).toEqual([]);
});

describe('an organization that is being loaded', () => {
  beforeEach(async () => {
    expect(await migrateClaim(store, base, second, 'load')).toEqual(['begun']);
  });

  test('is loaded by no other run, but by a later apply of its own', async () => {
    expect(await migrateClaim(store, base, other, 'load')).toEqual(['held', 'r']);
    await expect(migrateClaim(store, base, first, 'load')).rejects.toThrow(takenOver);
    expect(await migrateClaim(store, base, third, 'load')).toEqual(['begun']);
    expect(await load(second, 'profiles', ['ada', 't', '1'])).toBe('lost');
    expect(await finish(second)).toBe('lost');
    expect(await stored('ada')).toEqual({});
    expect(await finish(third, 'exact', '1', '64', '', '', '')).toBe('finished');
  });

  test('is lost to its apply by a switch of the mode, and taken over by the next one of the run', async () => {
    expect(await cutoverRaiseEpoch(store, base, 4, '', '')).toBe(0);
    expect(await load(second, 'profiles', ['ada', 't', '1'])).toBe('lost');
    expect(await migrateClaim(store, base, other, 'load')).toEqual(['held', 'r']);
    expect(await migrateClaim(store, base, third, 'load')).toEqual(['begun']);
  });

  test('gets each profile whole, whatever an earlier attempt has left, and parts of the index bit by bit', async () => {
    await store.hset(profileKey(base, 'ada'), { t: '1', w: '0x1' });
    await store.set(profileKey(base, 'bob'), 'text');
    await store.hset(profileKey(base, 'eve'), { t: '1' });
    const rows = [['ada', 'u', 'Ada', 't', '2'], ['bob', 't', '2'], ['eve'], ['zoe', 't', '2']];
    expect(await load(second, 'profiles', ...rows)).toBe('loaded');
    const users = await Promise.all(['ada', 'bob', 'eve', 'zoe'].map(stored));
    expect(users).toEqual([{ u: 'Ada', t: '2' }, { t: '2' }, {}, { t: '2' }]);

    await load(second, 'names', ['1', 'Ada', 'ada']);
    await load(second, 'names', ['1', 'Eve', 'eve'], ['0', 'Bob', 'bob']);
    expect(await store.hgetall(namesBucketKey(base, '0', '1'))).toEqual({ Ada: 'ada', Eve: 'eve' });
    expect(await store.hgetall(namesBucketKey(base, '0', '0'))).toEqual({ Bob: 'bob' });
  });

  test('loses the keys that a rollback names', async () => {
    await load(second, 'profiles', ['ada', 't', '1'], ['bob', 't', '1']);
    expect(await migrateRollBack(store, base, second, profileKey(base, 'ada'))).toBe('removed');
    expect([await stored('ada'), await stored('bob')]).toEqual([{}, { t: '1' }]);
  });

  test('exists once its load is finished, with the settings that are set and the epoch of the load', async () => {
    expect(await finish(second, 'exact', '1', '64', '', '', '1')).toBe('finished');
    const settings = { comparison: 'exact', min: '1', max: '64', ownership: '1' };
    expect(await store.hgetall(settingsKey(base))).toEqual({ ...settings, n0: '2', epoch: '3' });
    expect(await store.exists(loadingKey(base))).toBe(0);
  });

  test('keeps the settings that it has got meanwhile', async () => {
    await store.hset(settingsKey(base), 'comparison', 'case-insensitive');
    expect(await finish(second, 'exact', '1', '64', '', '', '')).toBe('lost');
    expect(await store.hgetall(settingsKey(base))).toEqual({ comparison: 'case-insensitive' });
  });
});

describe('the state of a run', () => {
  const change = async (claim: string, action: string, state = '') =>
    await changeRun(store, runKey(prefix, 'r'), claim, action, state);
  const state = async () => await store.hget(runKey(prefix, 'r'), 'state');

  test('is changed by the last apply that has claimed it, and no earlier one', async () => {
    for (const claim of [first, second, second]) expect(await change(claim, 'claim')).toBe('done');
    await change(second, 'save', '{"a":1}');
    for (const action of ['claim', 'check', 'save', 'forget']) {
      await expect(change(first, action, '{}')).rejects.toThrow(takenOver);
    }
    expect(await change(second, 'check', '{}')).toBe('done');
    expect(await state()).toBe('{"a":1}');
  });

  test('is gone once it is forgotten', async () => {
    await change(first, 'claim');
    await change(first, 'save', '{}');
    await change(first, 'forget');
    expect(await keysOf(store, prefix)).toEqual([]);
    await expect(change(first, 'save', '{}')).rejects.toThrow(takenOver);
  });
});
