import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  dry,
  migratePicture,
  migrateProfiles,
  migratePrune,
  migrateRecords,
  migrateRename,
} from '../../../src/migration/engine/scripts.ts';
import {
  adoptionsKey,
  apiKeyIdsKey,
  apiKeyKey,
  denylistKey,
  denylistWritesKey,
  localWritesKey,
  lostNamesKey,
  namesBucketKey,
  objectsKey,
  pendingRenamesKey,
  profileKey,
  settingsKey,
  stageKey,
  stageOwnerKey,
  unreferencedPicturesKey,
  unsettledKey,
} from '../../../src/redis/keys.ts';
import { newOrganization } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

/** The current authority: what was written here under a lower epoch does not count. */
const epoch = 5;
const snapshotAt = 1000;
const claim = 'r\n5\n1';

const store = await useTestStore();
let base: string;
let names: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
  names = namesBucketKey(base, '0', '0');
  await store.hset(`${base}claims`, 'r', claim);
});

const stored = async (user: string) => await store.hgetall(profileKey(base, user));
const unreferenced = async () => await store.zrange(unreferencedPicturesKey(base), '0', '-1');

/** A user who has a name here. */
async function addUser(id: string, username: string, fields: Record<string, string | number> = {}) {
  await store.hset(profileKey(base, id), { u: username, t: 100, ...fields });
  await store.hset(names, username, id);
}

/** Names must not change: a rebuild of the index is under way. */
const freeze = async () => await store.set(`${base}reindex`, 'token 0');

/** A denylist overwrite has yet to decide about this name. */
async function stage(name: string) {
  await store.hset(stageKey(base), name, '');
  await store.set(stageOwnerKey(base), 'overwrite');
}

describe('a profile of the source', () => {
  /** Applies one row: the name and the fields, last of them its time. */
  async function apply(
    id: string,
    {
      name = '',
      seen = '',
      fields = [] as string[],
      t = '200',
      trust = '' as 'trust-source' | '',
      by = claim,
    },
  ): Promise<unknown> {
    const row = [id, name, seen, seen, ...(name === '' ? [] : ['u', name]), ...fields, 't', t];
    const rows = JSON.stringify([row]);
    return await migrateProfiles(store, base, epoch, '0', by, rows, snapshotAt, epoch, 1, trust);
  }
  const applied = (outcome: string, ...others: unknown[]) => ['applied', [outcome], others, []];

  test('is not written while names must not change', async () => {
    await freeze();
    expect(await apply('ada', { name: 'Ada' })).toEqual(['frozen']);
    expect(await stored('ada')).toEqual({});
  });

  test('gets no name that a denylist overwrite has yet to decide about, but keeps one that it has', async () => {
    await addUser('ada', 'Ada');
    await stage('Ada');
    expect(await apply('bob', { name: 'Ada' })).toEqual(['frozen']);
    expect(await apply('ada', { name: 'Ada', seen: 'Ada', fields: ['w', '0x1'] })).toEqual(
      applied('updated'),
    );
  });

  test('replaces one that was written here under an earlier authority, not under the current one', async () => {
    await store.hset(profileKey(base, 'ada'), { t: 100, b: epoch });
    expect(await apply('ada', { fields: ['w', '0x1'] })).toEqual(applied('kept'));
    expect(await stored('ada')).toEqual({ t: '100', b: '5' });
    await store.hset(profileKey(base, 'ada'), { t: 300, b: epoch - 1 });
    expect(await apply('ada', { fields: ['w', '0x1'] })).toEqual(applied('updated'));
    expect(await stored('ada')).toEqual({ t: '200', w: '0x1' });
    // A mark that cannot be read counts as 0.
    await store.hset(profileKey(base, 'ada'), { b: 'x' });
    expect(await apply('ada', { fields: ['w', '0x2'] })).toEqual(applied('updated'));
  });

  test('replaces one that is newer here only if the source is trusted', async () => {
    await store.hset(profileKey(base, 'ada'), { t: 201 });
    expect(await apply('ada', { fields: ['w', '0x1'] })).toEqual(applied('newer'));
    expect(await apply('ada', { fields: ['w', '0x1'], trust: 'trust-source' })).toEqual(applied('updated'));
    expect(await apply('ada', { fields: ['w', '0x2'] })).toEqual(applied('updated'));
  });

  test('replaces none that was adopted at the very moment of the snapshot', async () => {
    await store.hset(profileKey(base, 'ada'), { t: '', as: 1, at: snapshotAt });
    expect(await apply('ada', { fields: ['w', '0x1'] })).toEqual(applied('kept'));
  });

  test('is not written where the user has another name than the caller saw', async () => {
    await addUser('ada', 'Here');
    expect(await apply('ada', { name: 'Ada', seen: 'Seen' })).toEqual(applied('renamed', [0, 'Here']));
    expect(await store.hgetall(names)).toEqual({ Here: 'ada' });
  });

  test('is written whatever the caller saw where the user has its name already', async () => {
    await addUser('ada', 'Ada');
    expect(await apply('ada', { name: 'Ada', seen: '', fields: ['w', '0x1'] })).toEqual(applied('updated'));
    expect(await stored('ada')).toEqual({ u: 'Ada', w: '0x1', t: '200' });
  });

  test('keeps when it was adopted, and by which number', async () => {
    await store.hset(profileKey(base, 'ada'), { t: '', as: 7, at: snapshotAt - 1 });
    expect(await apply('ada', { fields: ['w', '0x1'] })).toEqual(applied('updated'));
    expect(await stored('ada')).toEqual({ w: '0x1', t: '200', as: '7', at: '999' });
  });

  test('gives the old name up, unless another user has it by now', async () => {
    await addUser('ada', 'Old');
    expect(await apply('ada', { name: 'New', seen: 'Old' })).toEqual(applied('updated'));
    expect(await store.hgetall(names)).toEqual({ New: 'ada' });
    await store.hset(names, 'New', 'bob');
    expect(await apply('ada', { name: 'Newer', seen: 'New', t: '300' })).toEqual(applied('updated'));
    expect(await store.hgetall(names)).toEqual({ New: 'bob', Newer: 'ada' });
  });

  test('is written without change again where the index lacks its name', async () => {
    await store.hset(profileKey(base, 'ada'), { u: 'Ada', w: '0x1', t: 200 });
    await store.hset(names, 'Ada', 'ada');
    const same = { name: 'Ada', seen: 'Ada', fields: ['w', '0x1'] };
    expect(await apply('ada', same)).toEqual(applied('unchanged'));
    await store.del(names);
    expect(await apply('ada', same)).toEqual(applied('updated'));
    expect(await store.hgetall(names)).toEqual({ Ada: 'ada' });
    // Not in the order in which a migration writes it.
    await store.del(names, profileKey(base, 'ada'));
    await store.hset(profileKey(base, 'ada'), { t: 200, w: '0x1', u: 'Ada' });
    expect(await apply('ada', same)).toEqual(applied('updated'));
    expect(await store.hgetall(names)).toEqual({ Ada: 'ada' });
  });

  test('takes no name from another user, and a dry call names that user', async () => {
    await addUser('bob', 'Ada');
    expect(await apply('ada', { name: 'Ada' })).toEqual(applied('taken', [0, 'bob']));
    expect(await apply('ada', { name: 'Ada', by: dry })).toEqual(applied('created', [0, 'bob']));
    expect(await stored('ada')).toEqual({});
    expect(await store.hgetall(names)).toEqual({ Ada: 'bob' });
  });

  test('leaves no file behind that it replaces, and takes its own off the list of those', async () => {
    await store.zadd(unreferencedPicturesKey(base), 1, 'a.png', 1, 'b.png');
    expect(await apply('ada', { fields: ['pf', 'a.png'] })).toEqual(applied('created'));
    expect(await unreferenced()).toEqual(['b.png']);
    expect(await apply('ada', { fields: ['pf', 'b.png'], t: '300' })).toEqual(applied('updated'));
    expect(await unreferenced()).toEqual(['a.png']);
    expect(await apply('ada', { fields: ['pf', 'b.png', 'w', '0x1'], t: '400' })).toEqual(applied('updated'));
    expect(await unreferenced()).toEqual(['a.png']);
  });

  test('keeps the copy of the picture that it shows, and that alone', async () => {
    const shows = (url: string, t: string) => apply('ada', { fields: ['w', t, 'pu', url], t });
    await store.hset(profileKey(base, 'ada'), { pf: 'a.png', po: 'https://x/1', pt: 2000, t: 100 });
    expect(await shows('https://x/1', '200')).toEqual(applied('updated'));
    expect(await stored('ada')).toEqual({ pf: 'a.png', po: 'https://x/1', pt: '2000', w: '200', t: '200' });
    expect(await shows('https://x/2', '300')).toEqual(applied('updated'));
    expect(await stored('ada')).toEqual({ pu: 'https://x/2', w: '300', t: '300' });
    expect(await unreferenced()).toEqual(['a.png']);
  });

  test('does not differ by its time alone from one of an earlier authority, but from any other', async () => {
    await store.hset(profileKey(base, 'ada'), { t: 100, b: epoch - 1 });
    expect(await apply('ada', {})).toEqual(applied('unchanged'));
    await store.hset(profileKey(base, 'bob'), { t: 100, as: 1, at: 1 });
    expect(await apply('bob', {})).toEqual(applied('updated'));
  });

  test.each<[string, Record<string, string | number>, string[], Record<string, string>]>([
    ['was adopted', { at: 1, as: 1 }, [], { pr: 'shop\nhat' }],
    ['is of an earlier authority', { b: epoch - 1 }, [], { pr: 'shop\nhat' }],
    ['the source has brought', {}, [], { pu: 'https://x/1' }],
    ['has a URL of its own', { at: 1, as: 1, pu: 'https://x/2' }, [], { pu: 'https://x/1' }],
    ['the source replaces', { at: 1, as: 1 }, ['pr', 'shop\ntie'], { pr: 'shop\ntie', pu: 'https://x/1' }],
  ])('that shows the URL of a reference: one that %s', async (_what, fields, given, expected) => {
    await store.hset(objectsKey(base), 'shop\nhat', 'https://x/1');
    await store.hset(profileKey(base, 'ada'), { pr: 'shop\nhat', t: 100, ...fields });
    await apply('ada', { fields: ['w', '0x1', ...given, 'pu', 'https://x/1'] });
    const { t: _t, w: _w, as: _as, at: _at, ...picture } = await stored('ada');
    expect(picture).toEqual(expected);
  });

  test('repairs the user who has lost a name', async () => {
    await store.hset(profileKey(base, 'ada'), { t: '' });
    await store.hset(lostNamesKey(base), { ada: '1\nAda\nbob', eve: '1\nEve\nbob' });
    expect(await apply('ada', { name: 'Ada' })).toEqual(applied('updated'));
    expect(await store.hkeys(lostNamesKey(base))).toEqual(['eve']);
  });
});

describe('pruning', () => {
  const prune = async (
    entity: Parameters<typeof migratePrune>[8],
    row: string[],
    by = claim,
  ): Promise<unknown> =>
    await migratePrune(store, base, epoch, '0', by, JSON.stringify([row]), snapshotAt, epoch, entity);
  const removed = ['pruned', ['removed']];
  const kept = ['pruned', ['kept']];

  test('removes a profile with its name, and leaves its file to the sweep', async () => {
    await addUser('ada', 'Ada', { pf: 'a.png', b: epoch - 1 });
    expect(await prune('profiles', ['ada', 'Ada', 'Ada'])).toEqual(removed);
    expect(await store.exists(profileKey(base, 'ada'), names)).toBe(0);
    expect(await unreferenced()).toEqual(['a.png']);
  });

  test('leaves out a profile that is gone by now, in a dry call as well', async () => {
    for (const by of [claim, dry]) expect(await prune('profiles', ['ada', '', ''], by)).toEqual(kept);
  });

  test('removes no name that another user has by now', async () => {
    await addUser('ada', 'Ada');
    await store.hset(names, 'Ada', 'bob');
    expect(await prune('profiles', ['ada', 'Ada', 'Ada'])).toEqual(removed);
    expect(await store.hgetall(names)).toEqual({ Ada: 'bob' });
  });

  test.each<[string, Record<string, string | number>, string]>([
    ['was written here', { b: epoch }, 'Ada'],
    ['was adopted since the snapshot', { as: 1, at: snapshotAt }, 'Ada'],
    ['has another name by now', {}, 'Seen'],
  ])('keeps a profile that %s', async (_what, fields, seen) => {
    await addUser('ada', 'Ada', fields);
    expect(await prune('profiles', ['ada', seen, seen])).toEqual(kept);
    expect(await store.hgetall(names)).toEqual({ Ada: 'ada' });
  });

  test('does nothing while names must not change', async () => {
    await addUser('ada', 'Ada');
    await freeze();
    expect(await prune('profiles', ['ada', 'Ada', 'Ada'])).toEqual(['frozen']);
    expect(await stored('ada')).toEqual({ u: 'Ada', t: '100' });
  });

  test.each([
    ['', epoch, kept],
    ['root', epoch, kept],
    ['', epoch - 1, removed],
    ['root', epoch - 1, removed],
  ])('asks whether the denial (mark "%s", epoch %i) was made here', async (mark, made, outcome) => {
    await store.hset(denylistKey(base, '0'), 'root', '');
    await store.hset(denylistWritesKey(base), mark, made);
    expect(await prune('denylist', ['root'])).toEqual(outcome);
  });

  test('does not count a mark from before marks were epochs once the authority has changed', async () => {
    await store.hset(denylistKey(base, '0'), 'root', '');
    await store.sadd(localWritesKey(base), 'd\nroot');
    expect(await prune('denylist', ['root'])).toEqual(removed);
  });

  test('removes an API key with its id, unless it was made or revoked here', async () => {
    for (const [id, fields] of Object.entries({ made: { b: 1 }, revoked: { x: 1 }, old: {} })) {
      await store.hset(apiKeyKey(base, id), { i: `k_${id}`, r: 'player', ...fields });
      await store.hset(apiKeyIdsKey(base), `k_${id}`, id);
    }
    expect(await prune('api-keys', ['made'])).toEqual(kept);
    expect(await prune('api-keys', ['revoked'])).toEqual(kept);
    expect(await prune('api-keys', ['old'])).toEqual(removed);
    expect((await store.hkeys(apiKeyIdsKey(base))).sort()).toEqual(['k_made', 'k_revoked']);
  });

  test('keeps an object and an owned object that were set here', async () => {
    await store.hset(objectsKey(base), { 'd\nhere': 'x', 'd\nold': 'x' });
    await store.sadd(`${base}c:ada`, 'd\nhere', 'd\nold');
    await store.sadd(localWritesKey(base), 'o\nd\nhere', 'c\nada\nd\nhere');
    expect(await prune('objects', ['d\nhere'])).toEqual(kept);
    expect(await prune('objects', ['d\nold'])).toEqual(removed);
    expect(await prune('collections', ['ada', 'd\nhere'])).toEqual(kept);
    expect(await prune('collections', ['ada', 'd\nold'])).toEqual(removed);
  });
});

describe('a record of the source', () => {
  const apply = async (
    entity: Parameters<typeof migrateRecords>[8],
    row: string[],
    at: number | '' = snapshotAt,
  ): Promise<unknown> =>
    await migrateRecords(store, base, epoch, '0', claim, JSON.stringify([row]), at, epoch, entity);
  const applied = (outcome: string) => ['applied', [outcome], []];

  test('denies no name while names must not change', async () => {
    await freeze();
    expect(await apply('denylist', ['root', 'root'])).toEqual(['frozen']);
    expect(await store.exists(denylistKey(base, '0'))).toBe(0);
  });

  test('denies no name that was removed here, or of a list that was replaced here', async () => {
    await store.hset(denylistWritesKey(base), 'root', epoch);
    expect(await apply('denylist', ['root', 'root'])).toEqual(applied('kept'));
    expect(await apply('denylist', ['other', 'other'])).toEqual(applied('created'));
    await store.hset(denylistWritesKey(base), '', epoch);
    expect(await apply('denylist', ['third', 'third'])).toEqual(applied('kept'));
  });

  test('denies no name where a denylist change was adopted since its snapshot, or maybe since', async () => {
    const adoptedAt = async (at: number) => await store.hset(`${base}cutover:adoptions`, 'denylist-at', at);
    await adoptedAt(snapshotAt);
    expect(await apply('denylist', ['root', 'root'])).toEqual(applied('kept'));
    await adoptedAt(snapshotAt - 1);
    expect(await apply('denylist', ['root', 'root'], '')).toEqual(applied('kept'));
    expect(await apply('denylist', ['root', 'root'])).toEqual(applied('created'));
  });

  test('denies no name of which a change was adopted since its snapshot, but all others', async () => {
    const nameAt = (at: number) => store.hset(`${base}cutover:adoptions`, 'name:root', at);
    await nameAt(snapshotAt);
    expect(await apply('denylist', ['root', 'root'])).toEqual(applied('kept'));
    expect(await apply('denylist', ['other', 'other'])).toEqual(applied('created'));
    await nameAt(snapshotAt - 1);
    expect(await apply('denylist', ['root', 'root'], '')).toEqual(applied('kept'));
    expect(await apply('denylist', ['root', 'root'])).toEqual(applied('created'));
  });

  test('changes no API key that was made or revoked here', async () => {
    await store.hset(apiKeyKey(base, 'made'), { i: 'k_1', r: 'player', b: 1 });
    await store.hset(apiKeyKey(base, 'revoked'), { i: 'k_2', r: 'player', x: 1 });
    await store.hset(apiKeyKey(base, 'old'), { i: 'k_3', r: 'player', c: 'ios' });
    const admin = (sha256: string) => apply('api-keys', [sha256, 'k_new', 'admin', '', '', '']);
    expect(await admin('made')).toEqual(applied('kept'));
    expect(await admin('revoked')).toEqual(applied('kept'));
    expect(await admin('old')).toEqual(applied('updated'));
    expect(await store.hgetall(apiKeyKey(base, 'old'))).toEqual({ i: 'k_3', r: 'admin' });
    expect(await admin('new')).toEqual(applied('created'));
    expect(await store.hgetall(apiKeyIdsKey(base))).toEqual({ k_new: 'new' });
  });

  test('changes no settings that were made here', async () => {
    const defaults = ['exact', '1', '64', '', '', '0'];
    const row = ['exact', '2', '32', '', '', '0', ...defaults];
    expect(await apply('organizations', row)).toEqual(applied('kept'));
    expect(await apply('organizations', [...defaults, ...defaults])).toEqual(applied('unchanged'));
    await store.hdel(settingsKey(base), 'b');
    expect(await apply('organizations', row)).toEqual(applied('updated'));
    expect(await store.hmget(settingsKey(base), 'min', 'max')).toEqual(['2', '32']);
  });

  test('changes no object that was set here', async () => {
    await store.hset(objectsKey(base), { 'd\nhere': 'x', 'd\nold': 'x' });
    await store.sadd(localWritesKey(base), 'o\nd\nhere');
    expect(await apply('objects', ['d\nhere', 'y'])).toEqual(applied('kept'));
    expect(await apply('objects', ['d\nold', 'y'])).toEqual(applied('updated'));
  });
});

describe('the copy of a picture', () => {
  const url = 'https://x/1';
  const put = async (fetchedFrom = 0) =>
    await migratePicture(store, base, epoch, '', claim, 'ada', url, '', fetchedFrom, 'a.png', 60_000);
  /** The file is in place since then, and to be removed by the sweep unless a profile shows it. */
  const pending = async (since: number) => await store.zadd(unreferencedPicturesKey(base), since, 'a.png');

  test('takes the place of its URL, and belongs to the profile from then on', async () => {
    await pending(Date.now());
    await store.hset(profileKey(base, 'ada'), { pu: url, t: 100 });
    expect(await put()).toBe('put');
    expect(await stored('ada')).toEqual({ pf: 'a.png', po: url, pt: '0', t: '100' });
    expect(await unreferenced()).toEqual([]);
  });

  test.each([
    ['another URL', 'changed', { pu: 'https://x/2' }],
    ['a reference', 'changed', { pu: url, pr: 'shop\nhat' }],
    ['a file', 'changed', { pu: url, pf: 'b.png' }],
    ['been adopted', 'in-doubt', { pu: url, as: '7' }],
  ])('is left to the sweep where the user has %s by now', async (_what, outcome, fields) => {
    await pending(Date.now());
    await store.hset(profileKey(base, 'ada'), fields);
    expect(await put()).toBe(outcome);
    expect(await stored('ada')).toEqual(fields);
    expect(await unreferenced()).toEqual(['a.png']);
  });

  test('is left to the sweep while a change may bring another to the same URL, and not for one that is long past', async () => {
    await pending(Date.now());
    await store.hset(profileKey(base, 'ada'), { pu: url });
    await store.hset(unsettledKey(base), 'ada', '1:500:100 2:2000:100:7');
    expect(await put(1999)).toBe('in-doubt');
    expect(await stored('ada')).toEqual({ pu: url });
    expect(await put(2000)).toBe('put');
  });

  test('is left to the sweep if it was fetched before an upload that was not marked', async () => {
    await pending(Date.now());
    await store.hset(profileKey(base, 'ada'), { pu: url });
    await store.hset(adoptionsKey(base), 'unmarked-upload', 2000);
    expect(await put(1999)).toBe('in-doubt');
    expect(await put(2000)).toBe('put');
  });

  test('is not shown once the sweep may remove it, or has', async () => {
    await store.hset(profileKey(base, 'ada'), { pu: url });
    expect(await put()).toBe('lapsed');
    await pending(Date.now() - 120_000);
    expect(await put()).toBe('lapsed');
    expect(await stored('ada')).toEqual({ pu: url });
  });
});

describe('renames that depend on each other', () => {
  type Rename = [user: string, from: string, normalizedFrom: string, to: string, normalizedTo: string];
  const row = (id: string, from: string, to: string): Rename => [id, from, from, to, to];
  const rename = async (kind: 'record' | 'make', rows: Rename[]): Promise<unknown> =>
    await migrateRename(store, base, epoch, '0', claim, JSON.stringify(rows), '', epoch, kind);
  const swap = [row('ada', 'A', 'B'), row('bob', 'B', 'A')];
  beforeEach(async () => {
    await addUser('ada', 'A');
    await addUser('bob', 'B');
    await rename('record', swap);
  });

  test('are made together, and taken off the record', async () => {
    expect(await rename('make', swap)).toEqual(['done']);
    expect(await store.hgetall(names)).toEqual({ A: 'bob', B: 'ada' });
    expect([(await stored('ada'))['u'], (await stored('bob'))['u']]).toEqual(['B', 'A']);
    expect(await store.exists(pendingRenamesKey(base))).toBe(0);
  });

  test('wait while names must not change, and while an overwrite has yet to decide about one', async () => {
    await freeze();
    expect(await rename('make', swap)).toEqual(['frozen']);
    await store.del(`${base}reindex`);
    await stage('A');
    expect(await rename('make', swap)).toEqual(['frozen']);
    expect(await store.hgetall(names)).toEqual({ A: 'ada', B: 'bob' });
  });

  test('are not made where a user has another name by now, who keeps that and takes none', async () => {
    await store.hset(profileKey(base, 'ada'), 'u', 'Own');
    await store.hdel(names, 'A');
    await store.hset(names, 'Own', 'ada');
    expect(await rename('make', swap.toReversed())).toEqual(['done']);
    expect(await store.hgetall(names)).toEqual({ A: 'bob', Own: 'ada' });
    expect((await stored('ada'))['u']).toBe('Own');
  });

  test('leave a name to the user who has taken it meanwhile', async () => {
    await store.hset(profileKey(base, 'ada'), 'u', 'Own');
    await store.hset(names, { Own: 'ada', A: 'eve' });
    expect(await rename('make', swap.toReversed())).toEqual(['done']);
    expect(await store.hgetall(names)).toEqual({ A: 'eve', B: 'bob', Own: 'ada' });
  });

  test('keep a name in the index that is only spelled differently', async () => {
    const spelling: Rename[] = [['ada', 'A', 'A', 'a', 'A']];
    await rename('record', spelling);
    await rename('make', spelling);
    expect((await stored('ada'))['u']).toBe('a');
    expect(await store.hgetall(names)).toEqual({ A: 'ada', B: 'bob' });
  });

  test('create no profile of a user who is gone', async () => {
    const back = [row('eve', '', 'E')];
    await rename('record', back);
    expect(await rename('make', back)).toEqual(['done']);
    expect(await stored('eve')).toEqual({});
    expect(await store.hgetall(names)).toEqual({ A: 'ada', B: 'bob' });
  });

  test('are not made a second time', async () => {
    await rename('make', swap);
    await store.hset(profileKey(base, 'ada'), 'u', 'A');
    await store.hset(names, 'A', 'ada');
    await store.hdel(names, 'B');
    await rename('make', swap);
    expect((await stored('ada'))['u']).toBe('A');
    expect(await store.hgetall(names)).toEqual({ A: 'ada' });
  });

  test('take no name from another user', async () => {
    const chain = [row('ada', 'A', 'B')];
    await rename('record', chain);
    expect(await rename('make', chain)).toEqual(['done']);
    expect(await store.hgetall(names)).toEqual({ A: 'ada', B: 'bob' });
    expect((await stored('ada'))['u']).toBe('A');
  });
});
