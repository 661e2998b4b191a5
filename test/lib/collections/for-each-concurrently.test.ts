import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { forEachConcurrently } from '../../../src/lib/collections/for-each-concurrently.ts';

test('works on every item, in order, on some of them at a time', async () => {
  let [underWay, most] = [0, 0];
  const begun: number[] = [];
  await forEachConcurrently([1, 2, 3, 4, 5], 2, async (item) => {
    begun.push(item);
    most = Math.max(most, ++underWay);
    await nextTurn();
    underWay -= 1;
  });
  expect({ begun, most }).toEqual({ begun: [1, 2, 3, 4, 5], most: 2 });
});

test('stops at as many failures as there may be items at a time', async () => {
  const begun: number[] = [];
  const working = forEachConcurrently([1, 2, 3, 4, 5, 6], 2, async (item) => {
    begun.push(item);
    await nextTurn();
    if (item !== 2) throw new Error('cannot be reached');
  });
  await expect(working).rejects.toThrow('cannot be reached');
  expect(begun).toEqual([1, 2, 3]);
});

test('rejects only when no work is under way any more', async () => {
  const ended: number[] = [];
  const working = forEachConcurrently([1, 2, 3], 2, async (item) => {
    if (item === 1) throw new Error('the first failed');
    await nextTurn();
    ended.push(item);
  });
  await expect(working).rejects.toThrow('the first failed');
  expect(ended).toEqual([2, 3]);
});
