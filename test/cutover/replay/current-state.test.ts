import { beforeEach, describe, expect, test } from '@jest/globals';
import { currentDenylist, deniedAmong } from '../../../src/cutover/replay/current-state.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { denylistKey } from '../../../src/redis/keys.ts';
import { changeComparison } from '../../../src/redis/reindex/reindex.ts';
import { interceptCalls, newOrganization } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
const names = Array.from({ length: 3000 }, (_, n) => `Name${n}`);
let base: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store));
  await store.hset(denylistKey(base, '0'), Object.fromEntries(names.map((name) => [name, ''])));
});

describe('the denylist, whose names are compared in another way once a part of it was read,', () => {
  /** A client that changes the comparison before its second read of the denylist. */
  const changingMeanwhile = (): RedisClient => {
    let reads = 0;
    return interceptCalls(store, async (make, _command, [key]) => {
      if (key === denylistKey(base, '0') && ++reads === 2) {
        expect(await changeComparison(store, base, 'case-insensitive')).toMatchObject({ kind: 'rebuilt' });
      }
      return await make();
    });
  };

  test('is read as a whole', async () => {
    expect((await currentDenylist(changingMeanwhile(), base)).sort()).toEqual([...names].sort());
    expect(await store.exists(denylistKey(base, '0'))).toBe(0);
  });

  test('is asked once more for all names, as they are compared by then', async () => {
    const asked = ['NAME0', ...names, 'other'];
    expect([...(await deniedAmong(changingMeanwhile(), base, asked))]).toEqual(['NAME0', ...names]);
    expect(await store.exists(denylistKey(base, '0'))).toBe(0);
  });
});
