import { beforeEach, expect, test } from '@jest/globals';
import { isStoreUnavailable } from '../../src/redis/connection/connect.ts';
import { banUsernames, overwriteDenylist, removeDenied } from '../../src/redis/denylist.ts';
import { organizationBase } from '../../src/redis/keys.ts';
import { putProfile } from '../../src/redis/profiles.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { freshPrefix } from '../support/redis.ts';
import { cutoverRaiseEpoch } from '../../src/cutover/switch/registry.ts';
import { newOrganization } from '../support/store.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let base: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
});

test('a change that was admitted before a switch raised the epoch is refused, and changes nothing', async () => {
  const snapshot = await readWriteSnapshot(store, base, 'ada');
  const context = { store, base, keyId: 'k', snapshot };
  await overwriteDenylist(context, ['root']);
  expect(await cutoverRaiseEpoch(store, base, 3, '', '')).toBe(3);

  const attempts = [
    putProfile(store, base, 'ada', { username: 'Ada' }, snapshot),
    banUsernames(context, new Map([['admin', 'x']])),
    removeDenied(context, ['root']),
    overwriteDenylist(context, ['other']),
  ];
  for (const attempt of attempts) {
    const error: unknown = await attempt.catch((thrown: unknown) => thrown);
    expect(String(error)).toContain('OUTDATED');
    // Answered as a 503 with an unknown outcome.
    expect(isStoreUnavailable(error)).toBe(true);
  }
  expect(await store.exists(`${base}p:ada`)).toBe(0);
  expect(await store.hkeys(`${base}d0`)).toEqual(['root']);
});

test('a change of the same or a later epoch is made', async () => {
  await cutoverRaiseEpoch(store, base, 3, '', '');
  const snapshot = await readWriteSnapshot(store, base, 'ada');
  expect(snapshot.epoch).toBe(3);
  expect(await putProfile(store, base, 'ada', { username: 'Ada' }, snapshot)).toMatchObject({ kind: 'put' });
  const later = { ...(await readWriteSnapshot(store, base, 'ada')), epoch: 4 };
  expect(await putProfile(store, base, 'ada', { username: 'Eve' }, later)).toMatchObject({ kind: 'put' });
});

test('the epoch of an organization never falls, and makes no organization', async () => {
  await cutoverRaiseEpoch(store, base, 5, '', '');
  expect(await cutoverRaiseEpoch(store, base, 4, '', '')).toBe(5);
  const nobody = organizationBase(freshPrefix(), 'nobody');
  expect(await cutoverRaiseEpoch(store, nobody, 4, '', '')).toBe(0);
  expect(await store.exists(`${nobody}settings`)).toBe(0);
});
