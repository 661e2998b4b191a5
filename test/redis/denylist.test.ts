import { beforeEach, describe, expect, test } from '@jest/globals';
import { cutoverRaiseEpoch } from '../../src/cutover/switch/registry.ts';
import {
  banUsernames,
  overwriteDenylist,
  removeAbandonedStage,
  removeDenied,
} from '../../src/redis/denylist.ts';
import { denylistWritesKey, settingsKey } from '../../src/redis/keys.ts';
import { putProfile } from '../../src/redis/profiles.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { script } from '../../src/redis/connection/script-loader.ts';
import { newOrganization } from '../support/store.ts';
import { useTestStore } from '../support/use-store.ts';

const stageOpen = script<(string | number)[], unknown>('denylist/stage_open');
const stageAdd = script<(string | number)[], unknown>('denylist/stage_add');
const stageCommit = script<(string | number)[], unknown>('denylist/stage_commit');

const store = await useTestStore();
let base: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
});

const context = async () => ({ store, base, keyId: 'k', snapshot: await readWriteSnapshot(store, base) });
const put = async (user: string, username: string) =>
  (await putProfile(store, base, user, { username }, await readWriteSnapshot(store, base, user))).kind;
const denied = async () => (await store.hkeys(`${base}d0`)).sort();

describe('an overwrite of the denylist', () => {
  test('is not committed once its stage has lost a name', async () => {
    await overwriteDenylist(await context(), ['old']);
    await stageOpen(store, base, 0, '0', 'mine', 60_000);
    expect(await stageAdd(store, base, 0, '0', 'mine', 60_000, 'a', 'a', 'b', 'b')).toEqual([
      'staged',
      2,
      [],
    ]);
    await store.unlink(`${base}stage`);
    expect(await stageCommit(store, base, 0, '0', 'mine', 'k', 2)).toBe('lapsed');
    expect(await denied()).toEqual(['old']);
  });

  test('is not committed once its lease is over, and its names can be claimed', async () => {
    await overwriteDenylist(await context(), ['old']);
    await stageOpen(store, base, 0, '0', 'mine', 60_000);
    await stageAdd(store, base, 0, '0', 'mine', 60_000, 'a', 'a');
    expect(await put('ada', 'a')).toBe('busy');
    await store.pexpire(`${base}stage-owner`, 0);
    expect(await put('ada', 'a')).toBe('put');
    expect(await stageCommit(store, base, 0, '0', 'mine', 'k', 1)).toBe('lapsed');
    expect(await denied()).toEqual(['old']);
  });

  test('leaves nothing of the old list behind', async () => {
    for (const name of ['old', 'new']) await overwriteDenylist(await context(), [name]);
    expect(await denied()).toEqual(['new']);
    expect(await store.exists(`${base}stage`, `${base}stage-owner`, `${base}stage-old`)).toBe(0);
  });

  test('keeps its stage in a key that never expires, which would free it on the main thread', async () => {
    await stageOpen(store, base, 0, '0', 'mine', 60_000);
    await stageAdd(store, base, 0, '0', 'mine', 60_000, 'a', 'a');
    expect(await store.ttl(`${base}stage`)).toBe(-1);
    expect(await store.ttl(`${base}stage-owner`)).toBeGreaterThan(0);
  });

  test('has its stage removed once its owner is dead, and not before', async () => {
    await stageOpen(store, base, 0, '0', 'mine', 60_000);
    await stageAdd(store, base, 0, '0', 'mine', 60_000, 'a', 'a');
    await removeAbandonedStage(store, base);
    expect(await store.exists(`${base}stage`)).toBe(1);
    await store.pexpire(`${base}stage-owner`, 0);
    await removeAbandonedStage(store, base);
    expect(await store.exists(`${base}stage`)).toBe(0);
  });
});

describe('the record of local writes', () => {
  test('has one mark for a list that was overwritten, whatever is denied or removed afterwards', async () => {
    await banUsernames(await context(), new Map([['before', 'x']]));
    await removeDenied(await context(), ['before']);
    expect(await store.hgetall(denylistWritesKey(base))).toEqual({ before: '0' });
    await overwriteDenylist(await context(), ['a', 'b']);
    await banUsernames(await context(), new Map([['after', 'x']]));
    await removeDenied(await context(), ['a']);
    expect(await store.hgetall(denylistWritesKey(base))).toEqual({ '': '0' });
    expect(await denied()).toEqual(['after', 'b']);
  });

  test('has marks for single names again once the authority has changed, for that of the list no longer counts', async () => {
    await overwriteDenylist(await context(), ['a']);
    await cutoverRaiseEpoch(store, base, 3, '', '');
    await banUsernames(await context(), new Map([['root', 'x']]));
    expect(await store.hgetall(denylistWritesKey(base))).toEqual({ '': '0', root: '3' });
  });
});

test('a ban of a name that is already denied keeps its spelling, and is not in the audit trail', async () => {
  await store.hset(settingsKey(base), 'comparison', 'case-insensitive');
  for (const name of ['Root', 'ROOT']) {
    const outcome = await banUsernames(await context(), new Map([[name, 'x']]));
    expect(outcome).toMatchObject({ failures: [] });
  }
  expect(await store.hgetall(`${base}d0`)).toEqual({ root: 'Root' });
  expect(await store.xlen(`${base}audit`)).toBe(1);
});
