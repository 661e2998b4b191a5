import { describe, expect, test } from '@jest/globals';
import { defaultSettings } from '../../../src/domain/settings.ts';
import type { UsernameComparison } from '../../../src/domain/usernames.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { banUsernames, overwriteDenylist } from '../../../src/redis/denylist.ts';
import { fsck, type Fault } from '../../../src/redis/fsck/fsck.ts';
import { adoptionsKey, namesBucketKey, organizationBase } from '../../../src/redis/keys.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { putProfile } from '../../../src/redis/profiles.ts';
import { changeComparison } from '../../../src/redis/reindex/reindex.ts';
import { scanKeys } from '../../../src/redis/connection/scan.ts';
import { readWriteSnapshot } from '../../../src/redis/changes.ts';
import { interceptCalls, openTestStore } from '../../support/store.ts';
import { startCluster } from '../../support/servers/redis-cluster.ts';
import { freshPrefix, startRedis } from '../../support/redis.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';
import { useTestStore } from '../../support/use-store.ts';

const reindexOpen = script<(string | number)[], unknown>('reindex/open');
const reindexAdd = script<(string | number)[], unknown>('reindex/add');
const reindexCommit = script<(string | number)[], unknown>('reindex/commit');
const reindexDrop = script<(string | number)[], unknown>('reindex/drop');
const reindexClose = script<(string | number)[], unknown>('reindex/close');

const store = await useTestStore();
const prefix = freshPrefix();

let organizations = 0;

async function newOrganization(
  comparison: UsernameComparison = 'exact',
  on = store,
  id = `o${organizations++}`,
): Promise<string> {
  await saveSettings(on, prefix, id, { ...defaultSettings, comparison });
  return organizationBase(prefix, id);
}

async function put(base: string, user: string, username: string, on = store): Promise<string> {
  return (await putProfile(on, base, user, { username }, await readWriteSnapshot(on, base, user))).kind;
}

async function context(base: string, on = store) {
  return { store: on, base, keyId: 'k_test', snapshot: await readWriteSnapshot(on, base) };
}

/** The generations of the name index and the denylist that have keys. */
async function generations(base: string, on = store): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const keys of scanKeys(on, base)) {
    for (const key of keys) {
      const generation = /^[nd](\d+)/.exec(key.slice(base.length))?.[1];
      if (generation !== undefined) found.add(generation);
    }
  }
  return found;
}

/**
 * The store as a process sees it that something happens to at its nth call. Waiting takes as long as `meanwhile`; a
 * killed process makes no further call.
 */
function faulty(
  call: number,
  fault: 'is killed at' | 'waits beyond its lease at' | 'loses the reply to',
  meanwhile: () => Promise<void>,
): { store: RedisClient; wasReached: () => boolean } {
  let calls = 0;
  const process = interceptCalls(store, async (make) => {
    const number = calls++;
    if (fault === 'is killed at' && number >= call) throw new Error('killed');
    if (fault === 'waits beyond its lease at' && number === call) await meanwhile();
    const reply = await make();
    if (fault === 'loses the reply to' && number === call) throw new Error('Connection is closed.');
    return reply;
  });
  return { store: process, wasReached: () => calls > call };
}

describe('changing how names are compared', () => {
  test('makes names that differ in case one name, and back', async () => {
    const base = await newOrganization();
    expect(await put(base, 'ada', 'Ada')).toBe('put');
    expect(await put(base, 'bob', 'bob')).toBe('put');
    expect(await changeComparison(store, base, 'case-insensitive')).toEqual({
      kind: 'rebuilt',
      usernames: 2,
      denied: 0,
    });
    expect(await put(base, 'eve', 'ADA')).toBe('taken');
    expect(await put(base, 'ada', 'ADA')).toBe('put');
    expect(await changeComparison(store, base, 'exact')).toMatchObject({ kind: 'rebuilt', usernames: 2 });
    expect(await put(base, 'eve', 'ada')).toBe('put');
    expect(await generations(base)).toEqual(new Set(['2']));
  });

  test('takes the denylist along, two spellings of one name as one entry', async () => {
    const base = await newOrganization();
    await banUsernames(
      await context(base),
      new Map([
        ['Root', 'x'],
        ['ROOT', 'y'],
        ['Nobody', 'z'],
      ]),
    );
    expect(await changeComparison(store, base, 'case-insensitive')).toEqual({
      kind: 'rebuilt',
      usernames: 0,
      denied: 2,
    });
    expect(await put(base, 'ada', 'rOOt')).toBe('denied');
    expect(await store.hget(`${base}d1`, 'nobody')).toBe('Nobody');
    expect(await generations(base)).toEqual(new Set(['1']));
  });

  test('changes nothing if names would collide, and reports every one of them', async () => {
    const base = await newOrganization();
    for (const [user, username] of [
      ['ada', 'Ada'],
      ['eve', 'ADA'],
      ['mallory', 'ada'],
      ['bob', 'bob'],
    ] as const) {
      await put(base, user, username);
    }
    const outcome = await changeComparison(store, base, 'case-insensitive');
    expect(outcome).toMatchObject({ kind: 'collisions', isComplete: true });
    const collisions = outcome.kind === 'collisions' ? outcome.collisions : [];
    expect(collisions).toHaveLength(1);
    expect(collisions[0]?.map(({ username }) => username).sort()).toEqual(['ADA', 'Ada', 'ada']);
    expect(await generations(base)).toEqual(new Set(['0']));
    expect((await readWriteSnapshot(store, base)).settings.comparison).toBe('exact');
    expect(await put(base, 'bob', 'BOB')).toBe('put');
  });

  test('keeps the record of what was denied or removed here, so that no migration changes it', async () => {
    const base = await newOrganization();
    await store.sadd(`${base}local-writes`, 'd\nOlder', 'd\n', 'o\nHats\nTop');
    await store.hset(`${base}denylist-writes`, { Root: 7, root: 3, rOOt: 5, Admin: 0, '': 2 });
    await changeComparison(store, base, 'case-insensitive');
    expect(await store.hgetall(`${base}denylist-writes`)).toEqual({
      Root: '7',
      rOOt: '5',
      root: '7',
      Admin: '0',
      admin: '0',
      older: '0',
      '': '2',
    });
  });

  test('reports an organization that compares names so already', async () => {
    const base = await newOrganization('case-insensitive');
    expect(await changeComparison(store, base, 'case-insensitive')).toEqual({ kind: 'unchanged' });
  });

  test('starts clean after a rebuild that was killed', async () => {
    const base = await newOrganization();
    await put(base, 'ada', 'Ada');
    // What a killed process leaves: a freeze about to end, and a generation half built.
    const opened = await reindexOpen(store, base, 'dead', 50, 'case-insensitive');
    expect(opened).toEqual(['opened', '0', '1', 1]);
    await reindexAdd(store, base, 'dead', 0, 50, '1', 'names', 'ghost', 'ada');
    expect(await changeComparison(store, base, 'case-insensitive')).toMatchObject({
      kind: 'rebuilt',
      usernames: 1,
    });
    expect(await generations(base)).toEqual(new Set(['2']));
    expect(await reindexAdd(store, base, 'dead', 1, 50, '2', 'names', 'ghost', 'ghost')).toEqual(['lapsed']);
    expect(await reindexCommit(store, base, 'dead', 1, '1', 'exact')).toBe('lapsed');
  });

  /**
   * Runs it with the number of each call that a rebuild makes, and more; returns whether each was reached. One is run again
   * if the machine was slower than the lease.
   */
  async function interruptEachCall(run: (call: number) => Promise<boolean | 'too-slow'>): Promise<boolean[]> {
    const untilInTime = async (call: number): Promise<boolean> => {
      for (let attempt = 1; attempt <= 10; attempt++) {
        const wasReached = await run(call);
        if (wasReached !== 'too-slow') return wasReached;
      }
      throw new Error('the machine was slower than the lease ten times');
    };
    return await Promise.all(Array.from({ length: 30 }, (_, call) => untilInTime(call)));
  }

  test.each(['is killed at', 'waits beyond its lease at', 'loses the reply to'] as const)(
    'loses no name and no entry of the denylist, whatever call it %s',
    async (fault) => {
      const lease = 1000;
      const reached = await interruptEachCall(async (call) => {
        const base = await newOrganization();
        await put(base, 'ada', 'Ada');
        await banUsernames(await context(base), new Map([['Root', 'x']]));
        const tool = faulty(call, fault, async () => {
          // By then another run has replaced it, and its lease is over.
          await changeComparison(store, base, 'case-insensitive', { lease });
        });
        const first = await changeComparison(tool.store, base, 'case-insensitive', { lease }).catch(
          () => undefined,
        );
        if (first?.kind === 'lapsed' && !tool.wasReached()) return 'too-slow';
        if (first?.kind === 'rebuilt') expect(await put(base, 'eve', 'ADA')).toBe('taken');
        expect(await put(base, 'eve', 'Ada')).toBe('taken');
        expect(await put(base, 'eve', 'Root')).toBe('denied');
        const change = () => changeComparison(store, base, 'case-insensitive', { lease });
        let again = await change();
        while (again.kind === 'lapsed') again = await change();
        expect(['rebuilt', 'unchanged']).toContain(again.kind);
        expect(await put(base, 'eve', 'ADA')).toBe('taken');
        expect(await put(base, 'eve', 'ROOT')).toBe('denied');
        return tool.wasReached();
      });
      expect([reached[10], reached.at(-1)]).toEqual([true, false]);
      const faults: Fault[] = [];
      await fsck(store, prefix, { repair: true, onFault: (found) => faults.push(found) });
      const kinds = faults.map(({ kind, isRepaired }) => `${kind} ${isRepaired}`);
      expect(kinds.filter((kind) => kind !== 'generation-left-over true')).toEqual([]);
    },
  );

  test('keeps the marks of adopted names as the new comparison has them, the later of two', async () => {
    const base = await newOrganization();
    const adoptions = adoptionsKey(base);
    await store.hset(adoptions, { drawn: 3, 'name:Evil': 100, 'name:EVIL': 200, 'name:evil': 50 });
    expect(await changeComparison(store, base, 'case-insensitive')).toMatchObject({ kind: 'rebuilt' });
    expect(await store.hgetall(adoptions)).toMatchObject({ drawn: '3', 'name:evil': '200' });
  });

  test('keeps the marks of denied names also as they are spelled, once the comparison is exact', async () => {
    const base = await newOrganization('case-insensitive');
    const adoptions = adoptionsKey(base);
    await banUsernames(await context(base), new Map([['BadName', 'x']]));
    await banUsernames(await context(base), new Map([['plain', 'y']]));
    await store.hset(adoptions, { 'name:badname': 200, 'name:plain': 100 });
    expect(await changeComparison(store, base, 'exact')).toMatchObject({ kind: 'rebuilt', denied: 2 });
    expect(await store.hgetall(`${base}denylist-writes`)).toEqual({ badname: '0', BadName: '0', plain: '0' });
    expect(await store.hgetall(adoptions)).toEqual({
      'name:badname': '200',
      'name:BadName': '200',
      'name:plain': '100',
    });
  });

  test('marks the whole denylist once the comparison is exact, if names were removed', async () => {
    const base = await newOrganization('case-insensitive');
    const adoptions = adoptionsKey(base);
    await store.hset(`${base}denylist-writes`, { gone: 3, former: 5, '': 2 });
    await store.hset(adoptions, { 'name:gone': 300, 'name:former': 100, 'denylist-at': 200 });
    expect(await changeComparison(store, base, 'exact')).toMatchObject({ kind: 'rebuilt' });
    expect(await store.hgetall(`${base}denylist-writes`)).toEqual({ gone: '3', former: '5', '': '5' });
    expect(await store.hgetall(adoptions)).toEqual({
      'name:gone': '300',
      'name:former': '100',
      'denylist-at': '300',
    });
  });

  test('lowers no mark of what was denied here, whatever call it waits beyond its lease at', async () => {
    const lease = 1000;
    const reached = await interruptEachCall(async (call) => {
      const base = await newOrganization();
      const marks = `${base}denylist-writes`;
      await store.hset(marks, 'Root', 0);
      const tool = faulty(call, 'waits beyond its lease at', async () => {
        await changeComparison(store, base, 'case-insensitive', { lease });
        await store.hset(marks, 'root', 7);
      });
      const first = await changeComparison(tool.store, base, 'case-insensitive', { lease });
      if (first.kind === 'lapsed' && !tool.wasReached()) return 'too-slow';
      if (tool.wasReached()) expect([call, await store.hget(marks, 'root')]).toEqual([call, '7']);
      return tool.wasReached();
    });
    expect([reached[10], reached.at(-1)]).toEqual([true, false]);
  });

  test('changes nothing if another program has removed names from the new index', async () => {
    const base = await newOrganization();
    await put(base, 'ada', 'Ada');
    const tool = interceptCalls(store, async (make, command, [, field]) => {
      if (command === 'hget' && field === 'n1') await store.del(namesBucketKey(base, '1', '0'));
      return await make();
    });
    expect(await changeComparison(tool, base, 'case-insensitive')).toEqual({ kind: 'inconsistent' });
    expect(await put(base, 'eve', 'Ada')).toBe('taken');
  });

  test('loses no name if a failover in its course has lost its last writes', async () => {
    const server = await startRedis();
    const replica = await openTestStore(server.url);
    /** The calls from `first` on are lost, and those from `next` on are made on the replica. */
    const failOver = async (first: number, next: number): Promise<boolean> => {
      const id = `failover-${first}-${next}`;
      const base = organizationBase(prefix, id);
      for (const on of [store, replica]) {
        await newOrganization('exact', on, id);
        await put(base, 'ada', 'Ada', on);
        await banUsernames(await context(base, on), new Map([['Root', 'x']]));
      }
      let calls = 0;
      const tool = interceptCalls(store, async (make) => {
        const number = calls++;
        if (number < first) await make(replica);
        return await make(number < next ? store : replica);
      });
      // What the replica has of it ends with its lease.
      await changeComparison(tool, base, 'case-insensitive', { lease: 500 }).catch(() => {});
      const { settings } = await readWriteSnapshot(replica, base);
      const name = settings.comparison === 'exact' ? 'Ada' : 'ADA';
      expect([id, await put(base, 'eve', name, replica)]).toEqual([id, 'taken']);
      const root = settings.comparison === 'exact' ? 'Root' : 'ROOT';
      expect([id, await put(base, 'eve', root, replica)]).toEqual([id, 'denied']);
      return calls > next;
    };
    try {
      // So that the replica knows the scripts.
      await newOrganization('exact', replica, 'scripts').then((base) =>
        changeComparison(replica, base, 'case-insensitive'),
      );
      for (let next = 1; await failOver(next, next); next++) {
        await Promise.all(Array.from({ length: next }, (_, first) => failOver(first, next)));
      }
    } finally {
      await closeRedis(replica);
      await server.stop();
    }
  });

  test('removes no part of a generation that is in force or being built', async () => {
    const base = await newOrganization();
    await put(base, 'ada', 'Ada');
    expect(await reindexDrop(store, base, '0')).toBe('in-use');
    await reindexOpen(store, base, 'building', 60_000, 'case-insensitive');
    await reindexAdd(store, base, 'building', 0, 60_000, '1', 'names', 'ada', 'ada');
    expect(await reindexDrop(store, base, '1')).toBe('in-use');
    await reindexCommit(store, base, 'building', 1, '1', 'case-insensitive');
    expect(await reindexDrop(store, base, '1')).toBe('in-use');
    expect(await reindexDrop(store, base, '0')).toBe('dropped');
    expect(await put(base, 'eve', 'ADA')).toBe('taken');
  });

  test('renews its lease with each step', async () => {
    const base = await newOrganization();
    await reindexOpen(store, base, 'slow', 60_000, 'case-insensitive');
    await reindexAdd(store, base, 'slow', 0, 600_000, '1', 'names', 'ada', 'ada');
    expect(await store.pttl(`${base}reindex`)).toBeGreaterThan(60_000);
  });

  test('keeps the first of several spellings of a denied name, and reports the others', async () => {
    const base = await newOrganization();
    await reindexOpen(store, base, 'one', 60_000, 'case-insensitive');
    const spellings = ['Root', 'ROOT', 'root'].flatMap((name) => [name, 'root']);
    expect(await reindexAdd(store, base, 'one', 0, 60_000, '1', 'denied', ...spellings)).toEqual([
      'added',
      [
        [1, 'ROOT'],
        [2, 'root'],
      ],
    ]);
    expect(await store.hgetall(`${base}d1`)).toEqual({ root: 'Root' });
  });

  test('is not ended by an earlier one that lost its lease', async () => {
    const base = await newOrganization();
    await reindexOpen(store, base, 'later', 60_000, 'case-insensitive');
    await reindexClose(store, base, 'earlier');
    expect(await reindexAdd(store, base, 'later', 0, 60_000, '1', 'names', 'ada', 'ada')).toEqual([
      'added',
      [],
    ]);
  });

  test('is reported as made if the reply to its last step was lost, and only then', async () => {
    const base = await newOrganization();
    await reindexOpen(store, base, 'one', 60_000, 'case-insensitive');
    expect(await reindexCommit(store, base, 'one', 1, '1', 'case-insensitive')).toBe('lapsed');
    expect(await reindexCommit(store, base, 'one', 0, '1', 'case-insensitive')).toBe('committed');
    expect(await reindexCommit(store, base, 'one', 0, '1', 'case-insensitive')).toBe('committed');
    expect(await reindexCommit(store, base, 'other', 0, '2', 'exact')).toBe('lapsed');
    expect((await readWriteSnapshot(store, base)).settings.comparison).toBe('case-insensitive');
  });

  test('removes a large generation whole, some buckets with each call', async () => {
    const base = await newOrganization();
    await store.hset(`${base}settings`, 'building', 7, 'n7', 300);
    for (let bucket = 0; bucket < 300; bucket++) await store.hset(`${base}n7:${bucket}`, 'Ghost', 'ghost');
    const replies = [1, 2, 3].map(() => reindexDrop(store, base, '7'));
    expect(await Promise.all(replies)).toEqual(['more', 'more', 'dropped']);
    expect(await generations(base)).toEqual(new Set());
    expect(await store.hexists(`${base}settings`, 'n7')).toBe(0);
  });

  test('removes no part of a generation if it cannot be told how large that is', async () => {
    const base = await newOrganization();
    await store.hset(`${base}settings`, 'building', 7, 'n7', 'many');
    await store.hset(`${base}n7:0`, 'Ghost', 'ghost');
    expect(await reindexDrop(store, base, '7')).toBe('in-use');
    expect(await generations(base)).toEqual(new Set(['7']));
  });

  test('changes nothing if the index does not agree with the profiles', async () => {
    const base = await newOrganization();
    await put(base, 'ada', 'Ada');
    await store.hset(`${base}p:ada`, 'u', 'Augusta');
    expect(await changeComparison(store, base, 'case-insensitive')).toEqual({ kind: 'inconsistent' });
    await store.hset(`${base}p:ada`, 'u', 'Ada');
    await store.hset(`${base}n0:1`, 'Ghost', 'ghost');
    expect(await changeComparison(store, base, 'case-insensitive')).toEqual({ kind: 'inconsistent' });
    await store.unlink(`${base}n0:1`);
    expect(await changeComparison(store, base, 'case-insensitive')).toMatchObject({ kind: 'rebuilt' });
  });

  test('keeps the denylist where the settings have lost which generation is in force', async () => {
    const base = await newOrganization();
    await changeComparison(store, base, 'case-insensitive');
    await store.hset(`${base}d1`, 'root', '');
    await store.hdel(`${base}settings`, 'index');
    expect(await changeComparison(store, base, 'exact')).toEqual({ kind: 'inconsistent' });
    expect(await store.hkeys(`${base}d1`)).toEqual(['root']);
  });

  test.each([
    ['n1', { n1: 9 }],
    ['index', { index: 5 }],
    ['index above the building', { index: 5, building: 1, n0: 1, n1: 1, n5: 9 }],
  ])('removes no generation where the settings have %s, which no rebuild has written', async (_, fields) => {
    const base = await newOrganization();
    await store.hset(`${base}settings`, { n0: 1, ...fields });
    await store.hset(`${base}d0`, 'root', '');
    await store.hset(`${base}d1`, 'root', '');
    expect(await changeComparison(store, base, 'case-insensitive')).toEqual({ kind: 'inconsistent' });
    expect(await store.hkeys(`${base}d0`)).toEqual(['root']);
    expect(await store.hkeys(`${base}d1`)).toEqual(['root']);
  });

  test.each(['0', '1'])(
    'leaves generation %s alone where the settings have no building',
    async (generation) => {
      const base = await newOrganization();
      await store.hset(`${base}settings`, 'n0', 1, 'n1', 1, 'index', 5);
      await store.hset(`${base}d${generation}`, 'root', '');
      expect(await reindexDrop(store, base, generation)).toBe('in-use');
      expect(await store.hkeys(`${base}d${generation}`)).toEqual(['root']);
    },
  );

  test('reads no key of another organization', async () => {
    const base = await newOrganization();
    await put(base, 'ada', 'Ada');
    const asked: string[] = [];
    const watched = interceptCalls(store, (make, command, args) => {
      const isScript = command === 'evalsha' || command === 'eval';
      asked.push(`${command} ${String(args[isScript ? 2 : 0])}`);
      return make();
    });
    await changeComparison(watched, base, 'case-insensitive');
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.filter((call) => !call.split(' ')[1]?.startsWith(base))).toEqual([]);
  });

  test('keeps names as they are while it works, and lets them be read', async () => {
    const base = await newOrganization();
    await put(base, 'ada', 'Ada');
    await reindexOpen(store, base, 'slow', 60_000, 'case-insensitive');
    const given = await context(base);
    const refused = [put(base, 'ada', 'Ada Lovelace'), banUsernames(given, new Map([['Ada', 'x']]))];
    expect(await Promise.all<unknown>(refused)).toEqual(['busy', { kind: 'busy' }]);
    expect((await readWriteSnapshot(store, base, 'ada')).username).toBe('Ada');
    await reindexClose(store, base, 'slow');
    expect(await put(base, 'ada', 'Ada Lovelace')).toBe('put');
  });

  test('is done by one process at a time', async () => {
    const base = await newOrganization();
    await reindexOpen(store, base, 'first', 60_000, 'case-insensitive');
    expect(await changeComparison(store, base, 'case-insensitive', { lease: 50 })).toEqual({ kind: 'busy' });
    await reindexClose(store, base, 'first');
  });

  test('changes nothing when it is interrupted', async () => {
    const base = await newOrganization();
    await put(base, 'ada', 'Ada');
    const signal = AbortSignal.abort();
    expect(await changeComparison(store, base, 'case-insensitive', { signal })).toEqual({
      kind: 'interrupted',
    });
    expect(await put(base, 'ada', 'Augusta')).toBe('put');
  });

  test('loses no change of a name and no overwrite that races with it', async () => {
    const base = await newOrganization();
    const users = Array.from({ length: 40 }, (_, i) => `u${i}`);
    await Promise.all(users.map((user) => put(base, user, `Name-${user}`)));
    const other = await openTestStore();
    const [rebuilt, overwritten, ...renamed] = await Promise.all([
      changeComparison(store, base, 'case-insensitive'),
      context(base).then((given) => overwriteDenylist({ ...given, store: other }, ['Root', 'ROOT'])),
      ...users.map((user) => put(base, user, `NAME-${user}-2`, other)),
    ]);
    await closeRedis(other);
    expect(rebuilt.kind).toBe('rebuilt');
    expect(overwritten).toEqual({ kind: 'overwritten' });
    expect(new Set(renamed)).toEqual(new Set(['put']));
    for (const user of users) expect(await put(base, 'eve', `name-${user}-2`)).toBe('taken');
    expect(await put(base, 'eve', 'root')).toBe('denied');
    expect(await put(base, 'eve', 'name-u7')).toBe('put');
    expect(await generations(base)).toEqual(new Set(['1']));
  });

  test('finds every name on a cluster', async () => {
    const cluster = await startCluster();
    const there = await openTestStore(cluster.url);
    try {
      for (let at = 0; at < 4; at++) {
        const base = await newOrganization('exact', there);
        await put(base, 'ada', 'Ada', there);
        expect(await changeComparison(there, base, 'case-insensitive')).toMatchObject({
          kind: 'rebuilt',
          usernames: 1,
        });
        expect(await put(base, 'eve', 'ADA', there)).toBe('taken');
        expect(await generations(base, there)).toEqual(new Set(['1']));
      }
    } finally {
      await closeRedis(there);
      await cluster.stop();
    }
  });
});
