import { beforeEach, describe, expect, test } from '@jest/globals';
import { pendingGraceMs } from '../../src/domain/profile.ts';
import { trackPending } from '../../src/media/lifecycle.ts';
import { storeTime } from '../../src/redis/connection/client.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { profileKey } from '../../src/redis/keys.ts';
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
