import { beforeEach, describe, expect, test } from '@jest/globals';
import { drawAdoption, settleChange } from '../../../src/cutover/adopt/adoption.ts';
import { removeAbandonedStage } from '../../../src/redis/denylist.ts';
import { storeTime } from '../../../src/redis/connection/client.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';
import {
  adoptionsKey,
  auditKey,
  denylistChangeKey,
  denylistKey,
  differingUsersKey,
  failedAdoptionsKey,
  lostNamesKey,
  namesBucketKey,
  objectsKey,
  profileKey,
  settingsKey,
  stageKey,
  stageOwnerKey,
  unreferencedPicturesKey,
  unsettledKey,
} from '../../../src/redis/keys.ts';
import { newOrganization } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

const storeAdopted = script<(string | number)[], string>('cutover/adopt/profile');
const beginChange = script<(string | number)[], number>('cutover/adopt/begin_change');
const applyDenylist = script<(string | number)[], string>('cutover/adopt/denylist');

const store = await useTestStore();
let base: string;
let names: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
  names = namesBucketKey(base, '0', '0');
});

const stored = async (user: string) => await store.hgetall(profileKey(base, user));

/** A user who has a name here. */
async function addUser(id: string, username: string, fields: Record<string, string | number> = {}) {
  await store.hset(profileKey(base, id), { u: username, t: 1, b: 0, ...fields });
  await store.hset(names, username, id);
}

/** Adopts what the legacy service shows of ada. */
async function adopt(
  shown: { name?: string; picture?: string; avatar?: string; avatarUrl?: string; wallet?: string },
  { number, from = '', settles = '' }: { number?: number; from?: string; settles?: number | '' } = {},
): Promise<string> {
  const drawn = number ?? (await drawAdoption(store, base, 'ada', settles)).number;
  const profile = JSON.stringify({ ...shown, normalizedName: shown.name });
  return await storeAdopted(store, base, 0, '0', 'ada', drawn, 0, settles, from, from, profile);
}

describe('an adoption', () => {
  test('that was drawn before a later one was applied changes nothing, and settles its change', async () => {
    const change = await beginChange(store, base, 0, '', 'ada', 60_000);
    await store.hset(profileKey(base, 'ada'), { t: 1, as: 7 });
    for (const number of [6, 7]) {
      expect(await adopt({ name: 'Ada' }, { number, settles: change })).toBe('superseded');
    }
    expect(await stored('ada')).toEqual({ t: '1', as: '7' });
    expect(await store.exists(unsettledKey(base))).toBe(0);
    expect(await adopt({ name: 'Ada' }, { number: 8 })).toBe('adopted');
  });

  test('that was drawn before a denylist change began or ended has to read again', async () => {
    const { number: before } = await drawAdoption(store, base, 'ada', '');
    const change = await beginChange(store, base, 0, '', '', 60_000);
    const { number: meanwhile } = await drawAdoption(store, base, 'ada', '');
    expect(await adopt({ name: 'Ada' }, { number: before })).toBe('again');
    await settleChange(store, base, '', change, 0);
    expect(await adopt({ name: 'Ada' }, { number: meanwhile })).toBe('again');
    expect(await stored('ada')).toEqual({});
    expect(await adopt({ name: 'Ada' })).toBe('adopted');
  });

  test('changes nothing if the user has another name by now, or names must not change', async () => {
    await addUser('ada', 'Ada');
    expect(await adopt({ name: 'Eve' }, { from: 'Ann' })).toBe('stale');
    await store.set(`${base}reindex`, 'token 0');
    expect(await adopt({ name: 'Eve' }, { from: 'Ada' })).toBe('frozen');
    expect(await stored('ada')).toEqual({ u: 'Ada', t: '1', b: '0' });
    expect(await store.hgetall(names)).toEqual({ Ada: 'ada' });
  });

  test('gives the name up that the user had, unless another one has it by now', async () => {
    await addUser('ada', 'Ada');
    expect(await adopt({ name: 'Augusta' }, { from: 'Ada' })).toBe('adopted');
    expect(await store.hgetall(names)).toEqual({ Augusta: 'ada' });
    await store.hset(names, 'Augusta', 'bob');
    expect(await adopt({}, { from: 'Augusta' })).toBe('adopted');
    expect(await store.hgetall(names)).toEqual({ Augusta: 'bob' });
    expect(await stored('ada')).not.toHaveProperty('u');
  });

  test('takes a name from the user who has it here, whose profile is no longer known to be new', async () => {
    await addUser('bob', 'Ada');
    expect(await adopt({ name: 'Ada' })).toBe('adopted');
    expect(await store.hgetall(names)).toEqual({ Ada: 'ada' });
    expect(await stored('bob')).toEqual({ t: '' });
    expect(await store.hget(lostNamesKey(base), 'bob')).toMatch(/^\d+\nAda\nada$/);
  });

  test('does not take a name back from the user who took it', async () => {
    await addUser('bob', 'Ada');
    await store.hset(lostNamesKey(base), 'ada', '1\nAda\nbob');
    expect(await adopt({ name: 'Ada' })).toBe('conflict');
    expect(await store.hgetall(names)).toEqual({ Ada: 'bob' });
    expect(await stored('bob')).toEqual({ u: 'Ada', t: '1', b: '0' });
    expect(await store.hexists(lostNamesKey(base), 'ada')).toBe(1);
  });

  test('clears what was on record against the user, and no one else', async () => {
    const records = [differingUsersKey, failedAdoptionsKey, lostNamesKey].map((keyOf) => keyOf(base));
    for (const key of records) await store.hset(key, { ada: '1\nAnn\nbob', eve: '1\nEve\nbob' });
    await store.hset(profileKey(base, 'ada'), { t: 1, b: 0 });
    const change = await beginChange(store, base, 0, '', 'ada', 60_000);
    const later = await beginChange(store, base, 0, '', 'ada', 60_000);
    expect(await adopt({}, { settles: change })).toBe('adopted');
    expect(await store.hget(unsettledKey(base), 'ada')).toMatch(new RegExp(`^${later}:\\S+$`));
    for (const key of records) expect(await store.hkeys(key)).toEqual(['eve']);
    expect(await stored('ada')).toEqual({ t: '', as: '3', at: expect.stringMatching(/^\d+$/) });
  });

  test('keeps no copy of a picture for which a form is forwarded, whatever becomes of it', async () => {
    await store.hset(profileKey(base, 'ada'), { t: 1, pf: 'f.png', po: 'https://x/1' });
    await beginChange(store, base, 0, '', 'ada', 60_000, '1');
    expect(await stored('ada')).toEqual({ t: '1', pu: 'https://x/1' });
    expect(await store.zscore(unreferencedPicturesKey(base), 'f.png')).not.toBeNull();
  });

  test.each<[string, Record<string, string>, Record<string, string>]>([
    ['a copy of the picture shown', { pf: 'f.png', po: 'https://x/1' }, { pf: 'f.png', po: 'https://x/1' }],
    ['no copy of another picture', { pf: 'f.png', po: 'https://x/2' }, { pu: 'https://x/1' }],
    ['no picture uploaded here', { pf: 'f.png' }, { pu: 'https://x/1' }],
    ['a reference that leads to it', { pr: 'shop\nhat' }, { pr: 'shop\nhat' }],
    [
      'a reference without an entry whose own URL it is',
      { pr: 'shop\ncap', pu: 'https://x/1' },
      { pr: 'shop\ncap', pu: 'https://x/1' },
    ],
    ['no reference that leads elsewhere', { pr: 'shop\ntie' }, { pu: 'https://x/1' }],
    ['the URL that is shown', { pu: 'https://x/1' }, { pu: 'https://x/1' }],
    ['no file beside its URL', { pf: 'f.png', pu: 'https://x/1' }, { pu: 'https://x/1' }],
  ])('keeps %s', async (_what, before, after) => {
    await store.hset(objectsKey(base), { 'shop\nhat': 'https://x/1', 'shop\ntie': 'https://x/2' });
    await store.hset(profileKey(base, 'ada'), { t: 1, ...before });
    expect(await adopt({ picture: 'https://x/1' })).toBe('adopted');
    const { t: _t, as: _as, at: _at, ...left } = await stored('ada');
    expect(left).toEqual(after);
    const isGivenUp = before['pf'] !== undefined && after['pf'] === undefined;
    expect(await store.zrange(unreferencedPicturesKey(base), '0', '-1')).toEqual(isGivenUp ? ['f.png'] : []);
  });

  test('keeps a copy of the picture shown only if it is not older than an upload that was not marked', async () => {
    await store.hset(adoptionsKey(base), 'unmarked-upload', 2000);
    const copy = { pf: 'f.png', po: 'https://x/1', pt: '2000' };
    await store.hset(profileKey(base, 'ada'), { t: 1, ...copy });
    await adopt({ picture: copy.po });
    expect(await stored('ada')).toMatchObject(copy);
    await store.hset(profileKey(base, 'ada'), 'pt', 1999);
    await adopt({ picture: copy.po });
    const { pf, po, pt, pu } = await stored('ada');
    expect({ pf, po, pt, pu }).toEqual({ pf: undefined, po: undefined, pt: undefined, pu: copy.po });
  });

  test('stores an avatar’s URL only where its reference does not lead to it', async () => {
    await store.hset(objectsKey(base), 'shop\nhat', 'https://x/1');
    await adopt({ avatar: 'shop\nhat', avatarUrl: 'https://x/1' });
    expect(await stored('ada')).not.toHaveProperty('au');
    await adopt({ avatar: 'shop\nhat', avatarUrl: 'https://x/2' });
    expect(await stored('ada')).toMatchObject({ ar: 'shop\nhat', au: 'https://x/2' });
    await adopt({ avatarUrl: 'https://x/2' });
    expect(await stored('ada')).not.toHaveProperty('au');
  });

  test('keeps an unverified wallet until a verified one is shown', async () => {
    await store.hset(profileKey(base, 'ada'), { t: 1, wu: '0x1' });
    await adopt({});
    expect(await stored('ada')).toMatchObject({ wu: '0x1' });
    await adopt({ wallet: '0x2' });
    expect(await stored('ada')).toMatchObject({ w: '0x2' });
    expect(await stored('ada')).not.toHaveProperty('wu');
  });
});

describe('the marks of changes that are not adopted yet', () => {
  const numbers = async () =>
    ((await store.hget(unsettledKey(base), 'ada')) ?? '').split(' ').map((mark) => mark.split(':')[0]);

  test('are kept for each change, until it is settled or was due', async () => {
    const [first, second, third] = [
      await beginChange(store, base, 0, '', 'ada', 60_000),
      await beginChange(store, base, 0, '', 'ada', 600_000),
      await beginChange(store, base, 0, '', 'ada', 600_000),
    ];
    expect(await numbers()).toEqual([first, second, third].map(String));
    await settleChange(store, base, 'ada', second, 0);
    expect(await numbers()).toEqual([first, third].map(String));
    await settleChange(store, base, 'ada', '', (await storeTime(store)) + 120_000);
    expect(await numbers()).toEqual([String(third)]);
    await settleChange(store, base, 'ada', third, 0);
    expect(await store.exists(unsettledKey(base))).toBe(0);
  });

  test('are a hundred for a user at most: of more, the oldest are settled together, once all of them were due', async () => {
    const changes: number[] = [];
    for (let n = 0; n < 150; n++) {
      changes.push(await beginChange(store, base, 0, '', 'ada', n === 10 ? 600_000 : 60_000));
    }
    expect(await numbers()).toEqual(['0', ...changes.slice(-99).map(String)]);
    await settleChange(store, base, 'ada', '', (await storeTime(store)) + 120_000);
    expect(await numbers()).toEqual(['0']);
    await settleChange(store, base, 'ada', '', (await storeTime(store)) + 660_000);
    expect(await store.exists(unsettledKey(base))).toBe(0);
  });

  test('say when the change was forwarded, and when any adoption settles it', async () => {
    const before = await storeTime(store);
    const number = await beginChange(store, base, 0, '', 'ada', 60_000);
    const [of, due, at] = (await store.hget(unsettledKey(base), 'ada'))?.split(':').map(Number) ?? [];
    expect(of).toBe(number);
    expect(at).toBeGreaterThanOrEqual(Math.floor(before));
    expect(Math.abs(Number(at) + 60_000 - Number(due))).toBeLessThan(1000);
  });

  test('tell an adoption how long others may be in flight, and whether one was accepted after it began', async () => {
    const first = await beginChange(store, base, 0, '', 'ada', 60_000);
    expect(await drawAdoption(store, base, 'ada', first)).toMatchObject({ unsettled: 0, hasRival: false });
    const second = await beginChange(store, base, 0, '', 'ada', 600_000);
    const drawn = await drawAdoption(store, base, 'ada', second);
    expect(drawn).toMatchObject({ hasRival: false });
    expect(drawn.unsettled).toBeGreaterThan(0);
    expect(drawn.unsettled).toBeLessThanOrEqual(60_000);
    expect(await drawAdoption(store, base, 'ada', first)).toMatchObject({ hasRival: true });
  });
});

describe('a denylist change of the legacy service', () => {
  const apply = (token: string, kind: string, rows: string[][] = [], number = 1, index = '0') =>
    applyDenylist(store, base, 0, index, token, number, kind, JSON.stringify(rows), 'k_1');
  const begin = (token: string) => store.set(denylistChangeKey(base), token, 'PX', 60_000);
  const denied = async () => (await store.hkeys(denylistKey(base, '0'))).sort();
  const adoptedNames = async () =>
    (await store.hkeys(`${base}cutover:adoptions`)).filter((field) => /^name:|^denylist-at$/.test(field));

  test('is marked until it has ended', async () => {
    const first = await beginChange(store, base, 0, '', '', 60_000);
    expect(first).toBeGreaterThan(0);
    expect(await store.hkeys(unsettledKey(base))).toEqual(['']);
    await settleChange(store, base, '', 0, 0);
    expect(await store.hkeys(unsettledKey(base))).toEqual(['']);
    await settleChange(store, base, '', first, 0);
    expect(await store.exists(unsettledKey(base))).toBe(0);
    expect(await beginChange(store, base, 0, '', '', 60_000)).toBeGreaterThan(first);
  });

  test('is not applied without its lease, nor while names must not change', async () => {
    await begin('token');
    expect(await apply('earlier', 'ban', [['root', 'root', 'x', 'x']])).toBe('lapsed');
    await store.set(`${base}reindex`, 'token 0');
    expect(await apply('token', 'ban', [['root', 'root', 'x', 'x']])).toBe('frozen');
    expect(await denied()).toEqual([]);
    expect(await adoptedNames()).toEqual([]);
  });

  test('renames who has the name, and takes the replacement from anybody else', async () => {
    await begin('token');
    await addUser('ada', 'Ada');
    await addUser('bob', 'Bob');
    expect(await apply('token', 'ban', [['Ada', 'Ada', 'Bob', 'Bob']], 9)).toBe('applied');
    expect(await denied()).toEqual(['Ada']);
    expect(await store.hgetall(names)).toEqual({ Bob: 'ada' });
    const at = expect.stringMatching(/^\d+$/);
    expect(await stored('ada')).toEqual({ u: 'Bob', t: '', as: '9', at });
    expect(await stored('bob')).toEqual({ t: '' });
    expect(await adoptedNames()).toEqual(['name:Ada']);
  });

  test('leaves the user of a name alone that was denied already', async () => {
    await begin('token');
    await addUser('ada', 'Ada');
    await store.hset(denylistKey(base, '0'), 'Ada', '');
    expect(await apply('token', 'ban', [['Ada', 'Ada', 'x', 'x']])).toBe('applied');
    expect(await store.hgetall(names)).toEqual({ Ada: 'ada' });
  });

  test('replaces the whole list by what it has staged itself', async () => {
    await begin('token');
    await store.hset(denylistKey(base, '0'), 'old', '');
    await store.hset(stageKey(base), 'left behind', '');
    expect(await apply('token', 'commit')).toBe('again');
    expect(await apply('token', 'stage')).toBe('applied');
    expect(await apply('token', 'stage', [['new', 'new']])).toBe('applied');
    expect(await denied()).toEqual(['old']);
    expect(await apply('token', 'commit')).toBe('applied');
    expect(await denied()).toEqual(['new']);
    expect(await adoptedNames()).toEqual(['denylist-at']);
  });

  test('adds to no stage of another generation, and puts none in force', async () => {
    await begin('token');
    await apply('token', 'stage');
    await apply('token', 'stage', [['Root', 'Root']]);
    await store.hset(settingsKey(base), 'index', '1');
    expect(await apply('token', 'stage', [['Eve', 'eve']], 1, '1')).toBe('again');
    expect(await apply('token', 'commit', [], 1, '1')).toBe('again');
    expect(await store.hgetall(stageKey(base))).toEqual({ Root: '' });
    expect(await apply('token', 'stage', [], 1, '1')).toBe('applied');
    expect(await apply('token', 'stage', [['Root', 'root']], 1, '1')).toBe('applied');
    expect(await apply('token', 'commit', [], 1, '1')).toBe('applied');
    expect(await store.hgetall(denylistKey(base, '1'))).toEqual({ root: 'Root' });
  });

  test('does not go on with a stage that was taken for one left behind', async () => {
    await begin('token');
    await apply('token', 'stage');
    await apply('token', 'stage', [['first', 'first']]);
    await store.del(stageOwnerKey(base));
    await removeAbandonedStage(store, base);
    expect(await apply('token', 'stage', [['second', 'second']])).toBe('again');
    expect(await store.exists(stageKey(base), stageOwnerKey(base))).toBe(0);
  });

  test('keeps its stage while names must not change', async () => {
    await begin('token');
    await apply('token', 'stage');
    await apply('token', 'stage', [['first', 'first']]);
    await store.set(`${base}reindex`, 'token 0');
    await store.pexpire(stageOwnerKey(base), 60);
    for (let part = 0; part < 3; part++) {
      expect(await apply('token', 'stage', [['second', 'second']])).toBe('frozen');
    }
    expect(await store.pttl(stageOwnerKey(base))).toBeGreaterThan(1000);
    await store.del(`${base}reindex`);
    expect(await apply('token', 'stage', [['second', 'second']])).toBe('applied');
    expect(await apply('token', 'commit')).toBe('applied');
    expect(await denied()).toEqual(['first', 'second']);
  });

  test('is in the audit trail with the key that made it, but for what changed nothing here', async () => {
    await begin('token');
    await addUser('ada', 'Ada');
    for (let time = 0; time < 2; time++) await apply('token', 'ban', [['Ada', 'Ada', 'Eve', 'Eve']]);
    await apply('token', 'remove', [
      ['Ada', 'Ada'],
      ['absent', 'absent'],
    ]);
    await apply('token', 'stage');
    await apply('token', 'stage', [['new', 'new']]);
    await apply('token', 'commit');
    const entries = await store.xrange(auditKey(base), '-', '+');
    expect(entries.map(([, fields]) => fields.join(' '))).toEqual([
      'op ban key k_1 username Ada',
      'op rename key k_1 from Ada to Eve user ada',
      'op remove key k_1 username Ada',
      'op overwrite key k_1 before 0 after 1',
    ]);
  });

  test('of an epoch that has passed is refused', async () => {
    await begin('token');
    await store.hset(settingsKey(base), 'epoch', 1);
    await expect(apply('token', 'ban', [['root', 'root', 'x', 'x']])).rejects.toThrow('OUTDATED');
    expect(await denied()).toEqual([]);
  });
});
