import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { encodeReference } from '../../../src/domain/profile.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { createApiKey, revokeApiKey } from '../../../src/redis/operator/api-keys.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { bucketOf, cutoverKey, hashApiKey, nameHash, organizationBase } from '../../../src/redis/keys.ts';
import { banUsernames, overwriteDenylist } from '../../../src/redis/denylist.ts';
import { readNaming } from '../../../src/redis/fsck/check.ts';
import { fsck, type Fault, type FaultKind } from '../../../src/redis/fsck/fsck.ts';
import { trackPending } from '../../../src/media/lifecycle.ts';
import { addToCollection, setObject, setWallet } from '../../../src/redis/operator/profile-data.ts';
import { listOrganizations, saveSettings } from '../../../src/redis/organizations.ts';
import { putProfile } from '../../../src/redis/profiles.ts';
import { dropGeneration } from '../../../src/redis/reindex/generations.ts';
import { changeComparison } from '../../../src/redis/reindex/reindex.ts';
import { authenticate, readWriteSnapshot } from '../../../src/redis/changes.ts';
import { openTestStore } from '../../support/store.ts';
import { startCluster } from '../../support/servers/redis-cluster.ts';
import { freshPrefix } from '../../support/redis.ts';
import { startStopwatch } from '../../support/stopwatch.ts';
import { storeTime } from '../../../src/redis/connection/client.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';
import { useTestStore } from '../../support/use-store.ts';

const reindexOpen = script<(string | number)[], unknown>('reindex/open');
const reindexAdd = script<(string | number)[], unknown>('reindex/add');

const hat = { datasourceId: 'hats', objectDefinitionId: 'top hat' };
const file = 'AAAAAAAAAAAAAAAAAAAAAA.png';
const organizationId = 'acme {1}';

let store = await useTestStore();
let prefix: string;
let base: string;
beforeEach(async () => {
  prefix = freshPrefix();
  base = organizationBase(prefix, organizationId);
  await fill();
});

const put = async (user: string, username: string, on = store) =>
  (await putProfile(on, base, user, { username }, await readWriteSnapshot(on, base, user))).kind;

const context = async () => ({ store, base, keyId: 'k_1', snapshot: await readWriteSnapshot(store, base) });

/** An organization with something of everything. */
async function fill(on = store): Promise<void> {
  await saveSettings(on, prefix, organizationId, defaultSettings);
  await setObject(on, base, encodeReference(hat), 'https://cdn.example/hat.png');
  await addToCollection(on, base, 'ada', encodeReference(hat));
  await put('ada', 'Ada', on);
  await put('bob', 'bob', on);
  await put('bob', 'Bo\u0301b', on);
  await trackPending(on, base, file, await storeTime(on));
  await putProfile(
    on,
    base,
    'ada',
    { picture: { file }, avatar: hat },
    await readWriteSnapshot(on, base, 'ada'),
  );
  await setWallet(on, base, 'carol', `0x${'0'.repeat(40)}`, 'w');
  await createApiKey(on, base, { role: 'player', userId: 'ada' });
}

async function check(
  repair = false,
  organization?: string,
): Promise<{ faults: Fault[]; kinds: FaultKind[]; remaining: number }> {
  const faults: Fault[] = [];
  const onFault = (fault: Fault) => faults.push(fault);
  const outcome = await fsck(store, prefix, { organizationId: organization, repair, onFault });
  if (outcome.kind !== 'checked') throw new Error(outcome.kind);
  expect(outcome.found).toBe(faults.length);
  const kinds = faults.map(({ kind }) => kind).sort();
  return { faults, kinds, remaining: outcome.found - outcome.repaired };
}

/** Finds exactly this, changes nothing unless asked to, and then repairs it permanently. */
async function expectRepaired(...kinds: FaultKind[]): Promise<void> {
  expect((await check()).kinds).toEqual(kinds);
  expect(await check(true)).toMatchObject({ kinds, remaining: 0 });
  expect((await check()).faults).toEqual([]);
}

/** Where the index of a small organization has all names. */
const names = (): string => `${base}n0:0`;

describe('fsck', () => {
  test('finds nothing wrong with what the service has written', async () => {
    await banUsernames(await context(), new Map([['Ada', 'Augusta'], ['root', 'x']])); // prettier-ignore
    const outcome = await fsck(store, prefix, { repair: false, onFault: () => {} });
    expect(outcome).toEqual({
      kind: 'checked',
      found: 0,
      repaired: 0,
      loading: [],
      counts: { organizations: 1, profiles: 3, usernames: 2, deniedNames: 2, apiKeys: 1, references: 3 },
    });
    expect((await check(true)).faults).toEqual([]);
  });

  test('finds nothing wrong after the comparison was changed, nor an old generation', async () => {
    await changeComparison(store, base, 'case-insensitive');
    await put('dave', 'DAVE');
    await overwriteDenylist(await context(), ['Root']);
    expect((await check()).faults).toEqual([]);
  });

  test('reports an organization that does not exist', async () => {
    const onFault = () => {};
    expect(await fsck(store, prefix, { organizationId: 'nope', repair: true, onFault })).toEqual({
      kind: 'unknown-organization',
    });
  });

  test('examines only one organization if requested', async () => {
    await saveSettings(store, prefix, 'other', defaultSettings);
    await store.hset(`${organizationBase(prefix, 'other')}p:eve`, 'u', 'Eve', 't', 1);
    expect((await check(false, organizationId)).faults).toEqual([]);
    expect((await check(false, 'other')).kinds).toEqual(['username-not-indexed']);
    expect((await check()).faults).toMatchObject([{ organizationId: 'other' }]);
  });

  test('does not examine an organization that a migration is loading, nor call it faulty', async () => {
    const loading = organizationBase(prefix, 'new');
    await store.set(`${loading}loading`, 'run');
    await store.hset(`${loading}p:eve`, 'u', 'Eve', 't', 1);
    const options = { repair: true, onFault: () => {} };
    const loadingAlone = { kind: 'checked', found: 0, loading: ['new'] };
    expect(await fsck(store, prefix, options)).toMatchObject({
      ...loadingAlone,
      counts: { organizations: 1 },
    });
    expect(await fsck(store, prefix, { ...options, organizationId: 'new' })).toMatchObject(loadingAlone);
    await store.sadd(`${prefix}orgs`, 'new');
    expect(await fsck(store, prefix, options)).toMatchObject(loadingAlone);
  });

  test('finds nothing wrong with an organization that is created meanwhile', async () => {
    const other = organizationBase(prefix, 'other');
    const create = () => saveSettings(store, prefix, 'other', defaultSettings);
    const smembers = jest.spyOn(store, 'smembers').mockImplementationOnce(async (key) => {
      const read = await store.smembers(key);
      await create();
      return read;
    });
    expect((await check().finally(() => smembers.mockRestore())).faults).toEqual([]);

    await store.unlink(`${other}settings`);
    const original = store.type.bind(store);
    const type = jest.spyOn(store, 'type').mockImplementation(async (key) => {
      const read = await original(key);
      if (String(key) === `${other}settings` && read === 'none') await create();
      return read;
    });
    expect((await check().finally(() => type.mockRestore())).faults).toEqual([]);
  });

  test('finds nothing wrong with one whose load ends meanwhile', async () => {
    const loaded = organizationBase(prefix, 'new');
    await store.sadd(`${prefix}orgs`, 'new');
    await store.set(`${loaded}loading`, 'run');
    const original = store.type.bind(store);
    const type = jest.spyOn(store, 'type').mockImplementation(async (key) => {
      const read = await original(key);
      if (String(key) === `${loaded}settings` && read === 'none') {
        await store.hset(`${loaded}settings`, 'comparison', 'exact');
        await store.unlink(`${loaded}loading`);
      }
      return read;
    });
    expect((await check().finally(() => type.mockRestore())).faults).toEqual([]);
  });

  test('finds nothing wrong with one that only the legacy service knows', async () => {
    await store.sadd(`${prefix}cutover:organizations`, 'legacy');
    await store.hset(`${organizationBase(prefix, 'legacy')}cutover:unmapped-keys`, hashApiKey('1'), '{}');
    expect((await check()).faults).toEqual([]);
  });

  test('leaves alone what belongs to no organization', async () => {
    for (const key of ['{', '{}:', '{}:p:eve', '{a b}:p:eve', '{%zz}:p:eve', '{acme']) {
      await store.hset(prefix + key, 'u', 'Eve', 't', '1');
    }
    expect((await check(true)).faults).toEqual([]);
  });

  test('ends early when it is aborted', async () => {
    const options = { repair: false, onFault: () => {}, signal: AbortSignal.abort() };
    expect(await fsck(store, prefix, options)).toEqual({ kind: 'interrupted' });
  });
});

describe('the index of names', () => {
  test('is rebuilt where it is gone', async () => {
    await store.unlink(names());
    await expectRepaired('username-not-indexed', 'username-not-indexed');
    expect(await put('eve', 'Ada')).toBe('taken');
    expect(await put('eve', 'B\u00F3b')).toBe('taken');
  });

  test('gives a name back to the user who has it', async () => {
    await store.hset(names(), 'Ada', 'nobody');
    expect((await check()).kinds).toEqual(['index-entry-stale', 'username-not-indexed']);
    // Which of the two comes first depends on the scan, and repairing it repairs the other.
    for (let round = 0; round < 10; round++) {
      await store.hset(names(), 'Ada', 'nobody');
      expect((await check(true)).remaining).toBe(0);
      expect((await check()).faults).toEqual([]);
      expect(await store.hget(names(), 'Ada')).toBe('ada');
    }
  });

  test('gives a name that it does not have to one of two users at once', async () => {
    await store.hset(`${base}p:old`, { u: 'Zoe', t: 5 });
    await store.hset(`${base}p:new`, { u: 'Zoe', t: 6 });
    expect(await check(true)).toMatchObject({
      kinds: ['username-not-indexed', 'username-shared'],
      remaining: 0,
    });
    expect((await check()).faults).toEqual([]);
    expect(await store.hget(names(), 'Zoe')).toBe('new');
  });

  test('loses the entries that belong to no profile', async () => {
    await store.hset(names(), 'Ghost', 'ghost');
    await store.hset(names(), 'Ann', 'ada');
    await store.hset(`${base}n0:1`, 'Ada', 'ada');
    await expectRepaired('index-entry-stale', 'index-entry-stale', 'index-entry-stale');
    expect(await put('eve', 'Ghost')).toBe('put');
  });

  test('is repaired where a part of it is a key of another type', async () => {
    await store.set(names(), 'text');
    expect((await check()).kinds).toEqual(['username-not-indexed', 'username-not-indexed', 'wrong-type']);
    await check(true);
    expect((await check()).faults).toEqual([]);
    expect(await put('eve', 'Ada')).toBe('taken');
  });

  test('lets the profile changed last keep a name that two have, and records who lost it', async () => {
    await store.hset(`${base}p:old`, { u: 'Ada', t: 5, w: '0x1' });
    await store.hset(`${base}p:new`, { u: 'Bo\u0301b', t: Date.now() + 60_000 });
    await expectRepaired('username-shared', 'username-shared');
    expect(await store.hget(names(), 'Ada')).toBe('ada');
    expect(await store.hget(names(), 'B\u00F3b')).toBe('new');
    expect(await store.hgetall(`${base}p:old`)).toMatchObject({ w: '0x1' });
    expect(await store.hget(`${base}p:old`, 'u')).toBeNull();
    expect(await store.hget(`${base}p:bob`, 'u')).toBeNull();
    const trail = JSON.stringify(await store.xrange(`${base}audit`, '-', '+'));
    expect(trail).toContain('"user","old","username","Ada","kept-by","ada"');
    expect(trail).toContain('"user","bob","username","Bo\u0301b","kept-by","new"');
  });

  test('is checked completely although it grows meanwhile', async () => {
    const users = Array.from({ length: 200 }, (_, n) => `user-${n}`);
    const original = store.type.bind(store);
    let isGrown: Promise<unknown> | undefined;
    // The index has one bucket when it is begun, and many when the names are looked up.
    const type = jest.spyOn(store, 'type').mockImplementation(async (key) => {
      if (String(key).startsWith(`${base}p:`)) {
        isGrown ??= Promise.all(users.map((user) => put(user, `Name ${user}`)));
        await isGrown;
      }
      return await original(key);
    });
    await store.hset(`${base}p:eve`, { u: 'Eve', t: 1 });
    await store.hset(names(), 'Ada', 'nobody');
    expect(await check().finally(() => type.mockRestore())).toMatchObject({
      kinds: expect.arrayContaining(['username-not-indexed', 'username-not-indexed']),
    });
    expect(await store.hget(`${base}settings`, 'n0')).not.toBeNull();
    expect((await check(true)).remaining).toBe(0);
    expect((await check()).faults).toEqual([]);
  });

  test('is reported, and not repaired, where it holds bytes that are not UTF-8', async () => {
    await store.hset(names(), 'Ada', Buffer.from([0xff]));
    const kinds = ['index-entry-stale', 'username-not-indexed'];
    expect((await check()).kinds).toEqual(kinds);
    // It cannot be compared, so it is left to the operator.
    expect(await check(true)).toMatchObject({ kinds, remaining: 2 });
  });

  test('reports usernames that are not valid names', async () => {
    await store.hset(`${base}p:eve`, 'u', 'a\nb', 't', 1);
    await store.hset(names(), 'a\nb', 'eve');
    await store.hset(`${base}p:mallory`, 'u', Buffer.from([0x61, 0xff]), 't', 1);
    expect((await check(true)).kinds).toEqual(['username-malformed', 'username-malformed']);
  });

  test('has no fault in the generation that a rebuild has just replaced', async () => {
    await changeComparison(store, base, 'case-insensitive');
    await store.hset(`${base}settings`, 'n0', '1');
    const hkeys = jest.spyOn(store, 'hkeys').mockImplementationOnce(async (key) => {
      hkeys.mockRestore();
      const fields = await store.hkeys(key);
      await dropGeneration(store, base, '0');
      return fields;
    });
    expect((await check()).faults).toEqual([]);
  });

  test('loses what a killed rebuild left behind, but nothing that is being built', async () => {
    await reindexOpen(store, base, 'dead', 60_000, 'case-insensitive');
    await reindexAdd(store, base, 'dead', 0, 60_000, '1', 'names', 'ada', 'ada');
    expect((await check()).faults).toEqual([]);
    await store.unlink(`${base}reindex`);
    await expectRepaired('generation-left-over');
  });

  test('is kept, and so is the denylist, where the settings have lost which generation is in force', async () => {
    await changeComparison(store, base, 'case-insensitive');
    await overwriteDenylist(await context(), ['root']);
    await store.hdel(`${base}settings`, 'index');
    const { faults } = await check(true);
    expect(faults).toMatchObject([{ kind: 'settings-invalid', isRepaired: false }]);
    expect(faults[0]?.detail).toContain('set field index');
    expect(await store.hkeys(`${base}d1`)).toEqual(['root']);
    await store.hset(`${base}settings`, 'index', '1');
    expect((await check()).faults).toEqual([]);
  });

  test('is kept, and so is the denylist, where settings were lost that had put another generation in force', async () => {
    await changeComparison(store, base, 'case-insensitive');
    await overwriteDenylist(await context(), ['root']);
    const settings = await store.hgetall(`${base}settings`);
    await store.unlink(`${base}settings`);
    await saveSettings(store, prefix, organizationId, defaultSettings);
    const { faults } = await check(true);
    const unknown = faults.filter(({ isRepaired }) => !isRepaired);
    expect(unknown).toMatchObject([{ kind: 'settings-invalid' }]);
    expect(unknown[0]?.detail).toContain(`"${base}n1:*" and "${base}d1" are of a generation`);
    expect(await changeComparison(store, base, 'case-insensitive')).toEqual({ kind: 'inconsistent' });
    expect(await store.hkeys(`${base}d1`)).toEqual(['root']);
    await store.hset(`${base}settings`, settings);
    // The other one was made by the repair without them.
    await store.unlink(names());
    expect((await check()).faults).toEqual([]);
    expect(await store.hkeys(`${base}d1`)).toEqual(['root']);
  });

  test.each([
    ['restored without index and building', true, { index: '', building: '', n1: '9' }],
    ['without index and building after a rebuild', true, { index: '', building: '' }],
    ['with an index where there was no rebuild', false, { index: '5', n0: '1' }],
    ['with an index alone', false, { index: '5' }],
    ['with an index above building', true, { index: '5', n5: '9' }],
  ])('is kept, and so is the denylist, where the settings are %s', async (_, isRebuilt, fields) => {
    if (isRebuilt) await changeComparison(store, base, 'case-insensitive');
    await overwriteDenylist(await context(), ['root']);
    const before = await store.hgetall(`${base}settings`);
    const inForce = before['index'] ?? '0';
    for (const [field, value] of Object.entries(fields)) {
      if (value === '') await store.hdel(`${base}settings`, field);
      else await store.hset(`${base}settings`, field, value);
    }
    const { faults } = await check(true);
    expect(faults).toMatchObject([{ kind: 'settings-invalid', isRepaired: false }]);
    expect(faults[0]?.detail).toMatch(/set field index to the generation in force, and building/);
    expect(await store.hkeys(`${base}d${inForce}`)).toEqual(['root']);
    await store.hset(`${base}settings`, { index: inForce, building: '5', [`n${inForce}`]: '1' });
    expect((await check(true)).remaining).toBe(0);
    expect(await store.hkeys(`${base}d${inForce}`)).toEqual(['root']);
    expect(await put('eve', 'root')).toBe('denied');
  });

  test('says what to restore where all settings are lost, before anything new is made in their place', async () => {
    await changeComparison(store, base, 'case-insensitive');
    await store.unlink(`${base}settings`);
    const { faults } = await check(true);
    expect(faults).toMatchObject([{ kind: 'settings-missing', isRepaired: false }]);
    expect(faults[0]?.detail).toMatch(
      /first set index and building .*, n<g> .*, and comparison .*, and epoch .*, then run .* org set/,
    );
    await store.hset(`${base}settings`, { index: 1, building: 1, n1: 1, comparison: 'case-insensitive' });
    await saveSettings(store, prefix, organizationId, defaultSettings);
    expect((await check()).faults).toEqual([]);
  });

  test.each(['n7:16', 'n7:0', 'd7'])(
    'is reported where only %s is left of a generation that the settings do not have',
    async (key) => {
      await store.hset(base + key, 'root', '');
      const { faults } = await check(true);
      expect(faults).toMatchObject([{ kind: 'settings-invalid', isRepaired: false }]);
    },
  );

  test('loses every stale entry, also where the repair of names makes it grow', async () => {
    await store.unlink(names());
    const users = Array.from({ length: 300 }, (_, n) => [`u${n}`, `N${n}`] as const);
    for (const [user, name] of users) await store.hset(`${base}p:${user}`, { u: name, t: '1' });
    await store.hset(
      names(),
      Object.fromEntries(users.slice(0, 5).map(([user]) => [`ghost of ${user}`, 'nobody'])),
    );
    expect((await check(true)).remaining).toBe(0);
    expect((await check()).faults).toEqual([]);
  });

  test('loses every stale entry, also where it grows while what had been added is examined', async () => {
    const grow = async (from: number, to: number) => {
      for (let n = from; n < to; n++) await put(`user-${n}`, `Name ${n}`);
    };
    const original = store.type.bind(store);
    const steps = [`${base}p:`, `${base}n0:1`];
    const type = jest.spyOn(store, 'type').mockImplementation(async (key) => {
      if (!String(key).startsWith(steps[0] ?? '-')) return await original(key);
      steps.shift();
      if (steps.length === 1) {
        await grow(0, 200);
      } else {
        const { buckets } = await readNaming(store, base);
        const ghosts = Array.from({ length: 200 }, (_, n) => `ghost-${n}`);
        const inBucket = ghosts.filter((name) => bucketOf(nameHash(name), Number(buckets)) === 1);
        await store.hset(`${base}n0:1`, Object.fromEntries(inBucket.map((name) => [name, 'nobody'])));
        await grow(200, 800);
      }
      return await original(key);
    });
    expect((await check(true).finally(() => type.mockRestore())).remaining).toBe(0);
    expect((await check()).faults).toEqual([]);
  });

  test('is examined within a moment, however much killed rebuilds left behind', async () => {
    await store.hset(`${base}settings`, 'n0', '1', 'building', '5');
    for (let generation = 1; generation <= 5; generation++) {
      await store.hset(`${base}settings`, `n${generation}`, '1');
    }
    const elapsed = startStopwatch();
    expect((await check(true)).kinds).toEqual(Array(5).fill('generation-left-over'));
    expect(elapsed()).toBeLessThan(3000);
  });
});

describe('profiles', () => {
  test('get a time where they have none, and so are seen again', async () => {
    await store.hdel(`${base}p:ada`, 't');
    await expectRepaired('profile-undated');
    // A migration may not know when a profile was changed.
    await store.hset(`${base}p:ada`, 't', '');
    expect((await check()).faults).toEqual([]);
  });

  test('have numbers for marks of who wrote them', async () => {
    await store.hset(`${base}p:ada`, 'b', 'x', 'as', '', 'at', '-1');
    await expectRepaired('profile-mark-unreadable', 'profile-mark-unreadable', 'profile-mark-unreadable');
    expect(await store.hmget(`${base}p:ada`, 'b', 'as', 'at')).toEqual(['0', '0', '0']);
  });

  test('keep the picture file they refer to', async () => {
    await store.zadd(`${base}media`, 1, file);
    await expectRepaired('picture-loose');
    expect(await store.zscore(`${base}media`, file)).toBeNull();
    expect(await store.hget(`${base}p:ada`, 'pf')).toBe(file);
  });

  test('lose references that cannot be read, and the audit trail keeps them', async () => {
    await store.hset(`${base}p:carol`, 'pr', 'no line feed', 'ar', 'a\nb\nc');
    await expectRepaired('reference-unreadable', 'reference-unreadable');
    const trail = JSON.stringify(await store.xrange(`${base}audit`, '-', '+'));
    expect(trail).toContain('no line feed');
  });

  test('that are not hashes are left to the operator', async () => {
    await store.set(`${base}p:eve`, 'text');
    await store.hset(names(), 'Eve', 'eve');
    const { kinds, remaining } = await check(true);
    expect(kinds).toEqual(['index-entry-stale', 'wrong-type']);
    expect(remaining).toBe(1);
  });
});

describe('the denylist', () => {
  test('has every name under its form', async () => {
    await store.hset(`${base}d0`, 'e\u0301', '', 'nowhere', 'Root');
    await expectRepaired('denied-name-misfiled', 'denied-name-misfiled');
    expect(await store.hgetall(`${base}d0`)).toEqual({ '\u00E9': 'e\u0301', Root: '', nowhere: '' });
    expect(await put('eve', 'Root')).toBe('denied');
    const trail = JSON.stringify(await store.xrange(`${base}audit`, '-', '+'));
    expect(trail).toContain('"field","nowhere","value","Root"');
  });

  test('keeps a name denied whose spelling is damaged', async () => {
    await store.hset(`${base}d0`, 'root', 'x', 'admin', 'a\tb');
    await expectRepaired('denied-name-misfiled', 'denied-name-misfiled');
    expect(await store.hgetall(`${base}d0`)).toEqual({ root: '', x: '', admin: '' });
  });

  test('loses what nobody can have as a name', async () => {
    await store.hset(`${base}d0`, 'a\tb', '', 'root', '');
    await expectRepaired('denied-name-misfiled');
    expect(await store.hkeys(`${base}d0`)).toEqual(['root']);
  });

  test('is read once, and its names counted once, where a fault of it is gone meanwhile', async () => {
    await store.hset(`${base}d0`, 'root', '', 'admin', '', 'nowhere', 'Root', 'elsewhere', 'Admin');
    const hscan = jest.spyOn(store, 'hscan').mockImplementationOnce(async (key, cursor) => {
      const read = await store.hscan(key, cursor);
      await store.hdel(`${base}d0`, 'nowhere');
      return read;
    });
    const onFault = jest.fn<(fault: Fault) => void>();
    const outcome = await fsck(store, prefix, { repair: false, onFault });
    hscan.mockRestore();
    expect(onFault.mock.calls).toMatchObject([[{ detail: expect.stringContaining('"elsewhere"') }]]);
    expect(outcome).toMatchObject({ found: 1, counts: { deniedNames: 4 } });
  });
});

describe('API keys', () => {
  test('are listed again, and can be revoked', async () => {
    const { keyId, apiKey } = await createApiKey(store, base, { role: 'admin' });
    await store.hset(`${base}keys`, keyId, hashApiKey('another'));
    await expectRepaired('key-list-stale', 'key-not-listed');
    expect(await store.hget(`${base}keys`, keyId)).toBe(hashApiKey(apiKey));
    expect(await revokeApiKey(store, base, keyId)).toBe('revoked');
  });

  test('that have one public id are left to the operator, each named', async () => {
    for (const key of ['1', '2']) await store.hset(`${base}key:${hashApiKey(key)}`, 'i', 'k_2', 'r', 'admin');
    const { faults, remaining } = await check(true);
    expect(remaining).toBe(1);
    expect(faults.find(({ isRepaired }) => !isRepaired)?.detail).toMatch(
      /^".*:key:.*" and ".*:key:.*" have the same public id k_2.*: remove the one that was not meant$/,
    );
  });

  test.each(['', 'nan', 'inf', '9e99', '0x7fffffffffff'])(
    'that expire at "%s" have expired',
    async (time) => {
      const { apiKey } = await createApiKey(store, base, { role: 'admin' });
      await store.hset(`${base}key:${hashApiKey(apiKey)}`, 'e', time);
      expect((await check(true)).kinds).toEqual(['key-invalid']);
      expect(await authenticate(store, base, hashApiKey(apiKey))).toEqual({ kind: 'unknown' });
    },
  );

  test('that lack a part are left to the operator', async () => {
    await store.hset(`${base}key:${hashApiKey('1')}`, 'r', 'admin');
    await store.hset(`${base}key:${hashApiKey('2')}`, 'i', 'k_2', 'r', 'king', 't', '1e999', 'e', 'soon');
    await store.hset(`${base}keys`, 'k_2', hashApiKey('2'));
    await store.set(`${base}key:${hashApiKey('3')}`, 'text');
    const { kinds, remaining } = await check(true);
    expect(kinds).toEqual(['key-invalid', 'key-invalid', 'key-invalid', 'key-invalid', 'wrong-type']);
    expect(remaining).toBe(5);
  });
});

test('what holds the replacement character is repaired like anything else', async () => {
  await put('jos\uFFFD', 'Jos\uFFFD');
  await store.unlink(names());
  await expectRepaired('username-not-indexed', 'username-not-indexed', 'username-not-indexed');
  expect(await put('eve', 'Jos\uFFFD')).toBe('taken');
});

describe('organizations', () => {
  test('are registered again', async () => {
    await store.srem(`${prefix}orgs`, organizationId);
    await expectRepaired('unregistered-organization');
    expect(await listOrganizations(store, prefix)).toEqual([organizationId]);
  });

  test('without settings, or with wrong ones, are left to the operator', async () => {
    await store.hset(`${base}settings`, 'min', 'x', 'pattern', '(', 'comparison', 'fuzzy');
    expect((await check(true)).kinds).toEqual(['settings-invalid', 'settings-invalid', 'settings-invalid']);
    await store.unlink(`${base}settings`);
    expect((await check(true)).kinds).toEqual(['settings-missing']);
    await store.srem(`${prefix}orgs`, organizationId);
    expect((await check(true)).kinds).toEqual(['settings-missing']);
    await store.set(`${base}settings`, 'text');
    expect((await check(true)).kinds).toEqual(['wrong-type']);
  });

  test('without settings are all waited for together', async () => {
    const ids = Array.from({ length: 250 }, (_, n) => `lost-${n}`);
    await store.sadd(`${prefix}orgs`, ids);
    const start = performance.now();
    expect((await check()).faults).toHaveLength(ids.length);
    expect(performance.now() - start).toBeLessThan(20_000);
  });

  test.each([
    ['comparison', 'fuzzy'],
    ['index', 'x'],
    ['index', '007'],
    ['index', '99999999999999999999'],
    ['building', '1.5'],
    ['n0', ''],
    ['n0', '1e999'],
    ['n0', '0'],
    ['n1', '1e999'],
    ['epoch', 'x'],
    ['audited', '-1'],
  ])(
    'whose settings have %s %j, which Profile Bridge does not write, are not examined further',
    async (field, value) => {
      await store.hset(`${base}p:eve`, 'u', 'Eve', 't', '1');
      await store.hset(`${base}settings`, field, value);
      const { faults } = await check(true);
      expect(faults).toMatchObject([{ kind: 'settings-invalid', isRepaired: false }]);
      expect(faults[0]?.detail).toContain(`field ${field} of "${base}settings"`);
      if (['index', 'building', 'n0'].includes(field)) {
        expect(await changeComparison(store, base, 'case-insensitive')).toEqual({ kind: 'inconsistent' });
      }
    },
  );

  test('with an epoch above that of the cut-over are reported, and left to the operator', async () => {
    await store.hset(cutoverKey(prefix), 'epoch', '3');
    await store.hset(`${base}settings`, 'epoch', '3');
    expect((await check()).faults).toEqual([]);
    await store.unlink(cutoverKey(prefix));
    const detail = expect.stringMatching(
      / is 3, above the 0 of ".*cutover", so changes are refused: set that/,
    );
    expect((await check(true)).faults).toMatchObject([
      { kind: 'settings-invalid', detail, isRepaired: false },
    ]);
    await store.hset(cutoverKey(prefix), 'epoch', '3');
    expect((await check()).faults).toEqual([]);
  });

  test('have catalogues and collections that can be read', async () => {
    await store.hset(`${base}objects`, 'hats', 'https://cdn.example/');
    await store.sadd(`${base}c:ada`, '\nhat');
    await store.sadd(`${base}c:bob`, 'hats');
    await expectRepaired('reference-unreadable', 'reference-unreadable', 'reference-unreadable');
    expect(await store.exists(`${base}c:bob`)).toBe(0);
  });

  test('have keys of the right types, and unreferenced files that a sweep will remove', async () => {
    await store.zadd(`${base}media`, 9e15, 'BBBBBBBBBBBBBBBBBBBBBB.png');
    await expectRepaired('loose-file-undated');
    await store.unlink(`${base}objects`, `${base}keys`, `${base}c:ada`);
    await store.set(`${base}objects`, 'text');
    await store.set(`${base}keys`, 'text');
    await store.set(`${base}c:ada`, 'text');
    await store.set(`${base}d0`, 'text');
    expect((await check()).kinds.filter((kind) => kind === 'wrong-type')).toHaveLength(4);
  });

  test('have all unreferenced files with a time in the future repaired, however many they are', async () => {
    const files = Array.from({ length: 2500 }, (_, n) => [9e15, `${n}.png`] as const);
    await store.zadd(`${base}media`, ...files.flat());
    expect((await check()).kinds).toHaveLength(2500);
    expect(await check(true)).toMatchObject({ remaining: 0 });
    expect((await check()).faults).toEqual([]);
  });

  test('are not repaired while the audit trail cannot keep what is taken away', async () => {
    await setWrongType(`${base}audit`);
    await store.hset(`${base}objects`, 'hats', 'https://cdn.example/');
    expect(await check(true)).toMatchObject({ kinds: ['reference-unreadable', 'wrong-type'], remaining: 2 });
    expect(await store.hexists(`${base}objects`, 'hats')).toBe(1);
    await store.unlink(`${base}audit`);
    await expectRepaired('reference-unreadable');
  });

  test.each([
    'audit',
    'stage',
    'stage-owner',
    'reindex',
    'local-writes',
    'denylist-writes',
    'claims',
    'loading',
    'renames',
    'rate:k_1',
    'use:2026-01-01',
    'use:keys',
    'use:key:k_1',
    'use:flush:1',
    ...['comparisons', 'differing', 'unmapped-keys', 'refused-keys', 'adoptions', 'unsettled'].map(ofCutover),
    ...['failed-adoptions', 'lost-names', 'denylist-change', 'gaps', 'replay', 'replay-senders'].map(
      ofCutover,
    ),
    ...['replay-aside', 'replay-list:1', 'replay-files', 'replay-refusals'].map(ofCutover),
  ])('whose key %s has the wrong type are reported', async (key) => {
    await setWrongType(base + key, key.endsWith('use:keys'));
    const { faults } = await check(true);
    expect(faults).toMatchObject([{ organizationId, kind: 'wrong-type', isRepaired: false }]);
    expect(faults[0]?.detail).toContain(JSON.stringify(base + key));
  });
});

function ofCutover(key: string): string {
  return `cutover:${key}`;
}

async function setWrongType(key: string, isSortedSet = false): Promise<void> {
  await store.unlink(key);
  if (isSortedSet) await store.set(key, 'text');
  else await store.zadd(key, 1, 'text');
}

describe('what belongs to no organization', () => {
  test.each([
    'sweep',
    'cutover',
    'auth-failures:192.0.2.1',
    ...['organizations', 'legacy-pictures', 'legacy-pictures-due', 'replayer'].map(ofCutover),
    ...['replay-pause', 'replay-news', 'replay-look', 'replay-secret'].map(ofCutover),
    'deprecation:policy',
    'deprecation:orgs',
    'deprecation:{coverage}:2026-01-01',
    'deprecation:{unknown}:use:keys',
    'deprecation:{unknown}:use:2026-01-01',
    'migration:runs',
    'migration:run:1',
    'migration:run:1:organizations',
    'migration:run:1:loading',
    'migration:lock:1',
    'migration:token',
  ])('is reported where its key %s has the wrong type', async (key) => {
    await setWrongType(prefix + key, /:orgs$|:keys$/.test(key));
    const { faults } = await check(true);
    expect(faults).toMatchObject([{ organizationId: '', kind: 'wrong-type', isRepaired: false }]);
    expect(faults[0]?.detail).toContain(JSON.stringify(prefix + key));
  });

  test('is reported for one organization, too, if every organization needs it', async () => {
    await store.set(cutoverKey(prefix), 'text');
    expect((await check(false, organizationId)).kinds).toEqual(['wrong-type']);
  });

  test('is nothing that Profile Bridge does not know, such as what has a longer prefix', async () => {
    for (const key of ['other', `other:{${organizationId}}:settings`, 'cutover-b', 'cutoverx:replayer']) {
      await store.zadd(prefix + key, 1, 'text');
    }
    expect((await check()).faults).toEqual([]);
  });

  test('is reported for an organization that only the legacy service knows', async () => {
    await store.set(`${organizationBase(prefix, 'legacy')}cutover:unsettled`, 'text');
    expect((await check()).faults).toMatchObject([{ organizationId: 'legacy', kind: 'wrong-type' }]);
  });
});

test('fsck finds no fault and repairs nothing while the service is in use', async () => {
  const other = await openTestStore();
  const users = Array.from({ length: 30 }, (_, i) => `u${i}`);
  const state = { isDone: false };
  const faults: Fault[] = [];
  const work = async () => {
    for (let round = 0; round < 15; round++) {
      await Promise.all(users.map(async (user, i) => await put(user, `name ${(i + round) % 40}`, other)));
      await banUsernames({ ...(await context()), store: other }, new Map([[`name ${round}`, `r${round}`]]));
    }
  };
  const checks = async () => {
    while (!state.isDone) faults.push(...(await check(true)).faults);
  };
  const working = work().finally(() => (state.isDone = true));
  await Promise.all([working, checks()]).finally(() => closeRedis(other));
  expect(faults).toEqual([]);
  expect((await check()).faults).toEqual([]);
});

test('fsck examines a whole cluster', async () => {
  const cluster = await startCluster();
  const single = store;
  store = await openTestStore(cluster.url);
  try {
    for (const id of ['a', 'b', 'c', 'd']) {
      base = organizationBase(prefix, id);
      await saveSettings(store, prefix, id, defaultSettings);
      await put('ada', 'Ada');
      await store.unlink(names());
    }
    const four = Array<FaultKind>(4).fill('username-not-indexed');
    await expectRepaired(...four);
    expect(await put('eve', 'Ada')).toBe('taken');
  } finally {
    await closeRedis(store);
    store = single;
    await cluster.stop();
  }
});
