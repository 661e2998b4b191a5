import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { defaultSettings } from '../../src/domain/settings.ts';
import { createApiKey } from '../../src/redis/operator/api-keys.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { overwriteDenylist } from '../../src/redis/denylist.ts';
import { organizationBase, organizationsKey } from '../../src/redis/keys.ts';
import { saveSettings } from '../../src/redis/organizations.ts';
import { putProfile } from '../../src/redis/profiles.ts';
import { changeComparison } from '../../src/redis/reindex/reindex.ts';
import { sweepOrganizations } from '../../src/redis/sweep.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { createTool, newFolder, type Tool } from '../support/tools/migrate.ts';
import { runTool } from '../support/tools/admin.ts';
import { startCluster, type RedisCluster } from '../support/servers/redis-cluster.ts';
import { openTestStore } from '../support/store.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';

const prefix = 'pb:';
const ids = Array.from({ length: 12 }, (_, n) => `org-${n}`);
const denied = Array.from({ length: 3000 }, (_, n) => `denied-${n}`);
const counts = { organizations: 12, profiles: 12, usernames: 12, deniedNames: 3000, apiKeys: 12 };
/** It has a long denylist, so that a walk over that takes more than one call. */
const base = organizationBase(prefix, 'org-0');

let cluster: RedisCluster;
let store: RedisClient;
let tool: Tool;
let exported: string;

beforeAll(async () => {
  cluster = await startCluster();
  store = await openTestStore(cluster.url);
  tool = createTool(cluster.url, prefix);
  for (const id of ids) {
    const own = organizationBase(prefix, id);
    await saveSettings(store, prefix, id, defaultSettings);
    await createApiKey(store, own, { role: 'admin' });
    await putProfile(store, own, 'u1', { username: 'Ada' }, await readWriteSnapshot(store, own));
  }
  await overwriteDenylist(
    { store, base, keyId: 'k', snapshot: await readWriteSnapshot(store, base) },
    denied,
  );
  exported = newFolder();
  expect(await tool.text('export', '--to', exported)).toMatchObject({ exitCode: 0 });
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(async () => {
  await closeRedis(store);
  await cluster.stop();
});

/** Lets a slot move in the middle of a walk, so many times: after a server's keys were read, or a key's first part. */
function moveDuring(of: 'scan' | 'hscan' | 'sscan', key: string, times: number): { moves: () => number } {
  let moves = 0;
  let parts = 0;
  const owner = (of === 'scan' ? Redis.prototype : Cluster.prototype) as unknown as Record<
    string,
    (...args: unknown[]) => Promise<[next: string, entries: string[]]>
  >;
  const original = owner[of];
  if (original === undefined) throw new Error(`no ${of}`);
  jest.spyOn(owner, of).mockImplementation(async function (this: unknown, ...args: unknown[]) {
    const reply = await Reflect.apply(original, this, args);
    if (reply[0] !== '0') parts += 1;
    // The first part of a key tells only that there is more; the walk then starts over.
    if (moves < times && (of === 'scan' || parts === 2)) {
      moves += 1;
      await cluster.moveSlotOf(key);
    }
    return reply;
  });
  return { moves: () => moves };
}

const keysMoved = /keys moved between servers/;

test('fsck walks again where a slot moved meanwhile, and finds everything and no fault', async () => {
  const walk = moveDuring('scan', base, 1);
  const { code, out, err } = await runTool(tool.env, 'fsck --json');
  expect(walk.moves()).toBe(1);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(JSON.parse(out)).toMatchObject({ faults: [], found: 0, checked: counts });
});

test('fsck fails where slots keep moving, and says what to do', async () => {
  moveDuring('scan', base, 100);
  const { code, err } = await runTool(tool.env, 'fsck');
  expect([code, err]).toEqual([1, expect.stringMatching(keysMoved)]);
});

test.each(['scan', 'hscan'] as const)('an export fails where a slot moved during %s', async (of) => {
  const walk = moveDuring(of, base, 1);
  const folder = newFolder();
  const { exitCode, err } = await tool.text('export', '--to', folder);
  expect(walk.moves()).toBe(1);
  expect([exitCode, err]).toEqual([1, expect.stringMatching(keysMoved)]);
  // Half an export is none.
  expect((await tool.text('verify', '--source', folder)).exitCode).not.toBe(0);
});

test('verify fails where a slot moved meanwhile, and not only because it missed something', async () => {
  expect((await tool.text('verify', '--source', exported)).exitCode).toBe(0);
  const walk = moveDuring('scan', base, 1);
  const { exitCode, err } = await tool.text('verify', '--source', exported);
  expect(walk.moves()).toBe(1);
  expect([exitCode, err]).toEqual([1, expect.stringMatching(keysMoved)]);
});

test('a sweep fails where the list of organizations moved meanwhile', async () => {
  const key = organizationsKey(prefix);
  const more = Array.from({ length: 3000 }, (_, n) => `more-${n}`);
  await store.sadd(key, more);
  const walk = moveDuring('sscan', key, 1);
  await expect(sweepOrganizations(store, prefix, [])).rejects.toThrow(keysMoved);
  expect(walk.moves()).toBe(1);
  await store.srem(key, more);
});

test('a rebuild takes every name and denied name along, or changes nothing', async () => {
  const walk = moveDuring('hscan', base, 1);
  const outcome = await changeComparison(store, base, 'case-insensitive').catch(String);
  expect(walk.moves()).toBe(1);
  jest.restoreAllMocks();
  expect(outcome).toMatch(keysMoved);
  expect((await readWriteSnapshot(store, base)).settings.comparison).toBe('exact');
  expect(await changeComparison(store, base, 'case-insensitive')).toEqual({
    kind: 'rebuilt',
    usernames: 1,
    denied: denied.length,
  });
  const { out } = await runTool(tool.env, 'fsck --json');
  expect(JSON.parse(out)).toMatchObject({ found: 0, checked: counts });
});
