import { beforeEach, describe, expect, test } from '@jest/globals';
import { pendingGraceMs, type ProfileChange } from '../../src/domain/profile.ts';
import { defaultSettings } from '../../src/domain/settings.ts';
import { trackPending } from '../../src/media/lifecycle.ts';
import { storeTime } from '../../src/redis/connection/client.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { denylistKey, namesBucketKey, profileKey, stageKey, stageOwnerKey } from '../../src/redis/keys.ts';
import { saveSettings } from '../../src/redis/organizations.ts';
import { putProfile, type PutOutcome } from '../../src/redis/profiles.ts';
import { newOrganization } from '../support/store.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let base: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
});

const put = async (change: ProfileChange, user = 'u-1'): Promise<PutOutcome> =>
  await putProfile(store, base, user, change, await readWriteSnapshot(store, base, user));
const withFile = { username: 'Ada', picture: { file: 'new.webp' } };
const pendingFor = async (ms: number): Promise<void> =>
  await trackPending(store, base, 'new.webp', (await storeTime(store)) - ms);

describe('a profile is never given a picture file that may be swept', () => {
  test('a file that was pending for too long changes nothing', async () => {
    await pendingFor(pendingGraceMs + 1);
    expect(await put(withFile)).toEqual({ kind: 'lapsed' });
    expect(await store.exists(profileKey(base, 'u-1'))).toBe(0);
  });

  test('a file that is not pending any more changes nothing', async () => {
    expect(await put(withFile)).toEqual({ kind: 'lapsed' });
    expect(await store.exists(profileKey(base, 'u-1'))).toBe(0);
  });

  test('a file that was pending for less than that is referred to from then on', async () => {
    await pendingFor(pendingGraceMs - 60_000);
    expect(await put(withFile)).toMatchObject({ kind: 'put' });
    expect(await store.hmget(profileKey(base, 'u-1'), 'u', 'pf')).toEqual(['Ada', 'new.webp']);
  });
});

test('a change that fails, since a key has a wrong type, takes no name from anybody', async () => {
  await put({ username: 'Ada' });
  for (const key of ['renames', 'media']) {
    await store.hset(profileKey(base, 'u-1'), 'pf', 'old.webp');
    await store.set(`${base}${key}`, 'text');
    await expect(put({ username: 'Bob', picture: null })).rejects.toThrow('WRONGTYPE');
    await store.unlink(`${base}${key}`);
  }
  expect(await store.hget(profileKey(base, 'u-1'), 'u')).toBe('Ada');
  expect(await store.hgetall(namesBucketKey(base, '0', '0'))).toEqual({ Ada: 'u-1' });
});

test('a user whose name the index gives to somebody else does not release it', async () => {
  await put({ username: 'Ada' });
  await store.hset(namesBucketKey(base, '0', '0'), 'Ada', 'u-2');
  await put({ username: 'Bob' });
  expect(await store.hgetall(namesBucketKey(base, '0', '0'))).toEqual({ Ada: 'u-2', Bob: 'u-1' });
});

describe("a user's own name", () => {
  const change = async (username: string, user?: string) => (await put({ username }, user)).kind;

  test.each([
    ['exact', '\u00C9va', 'E\u0301va', '\u00C9va'],
    ['case-insensitive', 'Eva', 'eVA', 'eva'],
  ] as const)(
    'can be spelled anew while it is denied, compared %s',
    async (comparison, name, same, normalized) => {
      ({ base } = await newOrganization(store, { ...defaultSettings, comparison }));
      await change(name);
      await store.hset(denylistKey(base, '0'), normalized, '');
      await store.hset(stageKey(base), normalized, '');
      await store.set(stageOwnerKey(base), 'overwrite');
      expect(await change(same)).toBe('put');
      expect(await store.hget(profileKey(base, 'u-1'), 'u')).toBe(same);
      expect(await store.hgetall(namesBucketKey(base, '0', '0'))).toEqual({ [normalized]: 'u-1' });
      expect(await change(name, 'u-2')).toBe('denied');
    },
  );

  test('can be spelled anew though a rule has come since, where case makes no other name', async () => {
    const settings = { ...defaultSettings, comparison: 'case-insensitive' as const };
    const made = await newOrganization(store, settings);
    base = made.base;
    await change('Eva');
    await saveSettings(store, made.prefix, 'acme', { minLength: 5 });
    expect(await change('EVA')).toBe('put');
    expect(await change('Ada')).toBe('not-allowed');
  });
});
