import { beforeEach, describe, expect, test } from '@jest/globals';
import { pendingGraceMs } from '../../src/domain/profile.ts';
import { trackPending } from '../../src/media/lifecycle.ts';
import { storeTime } from '../../src/redis/connection/client.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { namesBucketKey, profileKey } from '../../src/redis/keys.ts';
import { putProfile, type PutOutcome } from '../../src/redis/profiles.ts';
import { newOrganization } from '../support/store.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let base: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
});

const put = async (file: string): Promise<PutOutcome> => {
  const change = { username: 'Ada', picture: { file } };
  return await putProfile(store, base, 'u-1', change, await readWriteSnapshot(store, base, 'u-1'));
};
const pendingFor = async (ms: number): Promise<void> =>
  await trackPending(store, base, 'new.webp', (await storeTime(store)) - ms);

describe('a profile is never given a picture file that may be swept', () => {
  test('a file that was pending for too long changes nothing', async () => {
    await pendingFor(pendingGraceMs + 1);
    expect(await put('new.webp')).toEqual({ kind: 'lapsed' });
    expect(await store.exists(profileKey(base, 'u-1'))).toBe(0);
  });

  test('a file that is not pending any more changes nothing', async () => {
    expect(await put('new.webp')).toEqual({ kind: 'lapsed' });
    expect(await store.exists(profileKey(base, 'u-1'))).toBe(0);
  });

  test('a file that was pending for less than that is referred to from then on', async () => {
    await pendingFor(pendingGraceMs - 60_000);
    expect(await put('new.webp')).toMatchObject({ kind: 'put' });
    expect(await store.hmget(profileKey(base, 'u-1'), 'u', 'pf')).toEqual(['Ada', 'new.webp']);
  });
});

test('a change that fails, since a key has a wrong type, takes no name from anybody', async () => {
  const change = async (username: string, picture: { picture?: null } = {}) =>
    await putProfile(
      store,
      base,
      'u-1',
      { username, ...picture },
      await readWriteSnapshot(store, base, 'u-1'),
    );
  await change('Ada');
  for (const key of ['renames', 'media']) {
    await store.hset(profileKey(base, 'u-1'), 'pf', 'old.webp');
    await store.set(`${base}${key}`, 'text');
    await expect(change('Bob', { picture: null })).rejects.toThrow('WRONGTYPE');
    await store.unlink(`${base}${key}`);
  }
  expect(await store.hget(profileKey(base, 'u-1'), 'u')).toBe('Ada');
  expect(await store.hgetall(namesBucketKey(base, '0', '0'))).toEqual({ Ada: 'u-1' });
});

test('a user whose name the index gives to somebody else does not release it', async () => {
  const change = async (username: string) =>
    await putProfile(store, base, 'u-1', { username }, await readWriteSnapshot(store, base, 'u-1'));
  await change('Ada');
  await store.hset(namesBucketKey(base, '0', '0'), 'Ada', 'u-2');
  await change('Bob');
  expect(await store.hgetall(namesBucketKey(base, '0', '0'))).toEqual({ Ada: 'u-2', Bob: 'u-1' });
});
