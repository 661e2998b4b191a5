import { EventEmitter, once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createQueue } from '../../src/media/queue.ts';

/** A work that lasts until it is told to end, and tells whether it has begun. */
function heldWork() {
  const told = new EventEmitter();
  let begun = false;
  const work = async (): Promise<string> => {
    begun = true;
    await once(told, 'end');
    return 'done by hand';
  };
  return { work, end: () => told.emit('end'), hasBegun: () => begun };
}

test('works run in the order in which they came', async () => {
  const inTurn = createQueue({ atOnce: 1, waiting: 2, maxWait: 60_000 });
  const order: number[] = [];
  const works = [1, 2, 3].map(async (n) => inTurn(async () => order.push(n)));
  await Promise.all(works);
  expect(order).toEqual([1, 2, 3]);
});

test('never more works are under way than allowed, and as many as that', async () => {
  const inTurn = createQueue({ atOnce: 3, waiting: 100, maxWait: 60_000 });
  let underWay = 0;
  const seen: number[] = [];
  const work = async (): Promise<void> => {
    seen.push((underWay += 1));
    await setImmediate();
    underWay -= 1;
  };
  await Promise.all(Array.from({ length: 50 }, async () => inTurn(work)));
  expect(Math.max(...seen)).toBe(3);
  expect(seen).toHaveLength(50);
});

test('a work that fails frees its place and passes its error on', async () => {
  const inTurn = createQueue({ atOnce: 1, waiting: 0, maxWait: 60_000 });
  await expect(inTurn(async () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await inTurn(async () => 'next')).toEqual({ kind: 'done', value: 'next' });
});

test('where nobody may wait, a second work is turned away at once', async () => {
  const inTurn = createQueue({ atOnce: 1, waiting: 0, maxWait: 60_000 });
  const [first, second] = [heldWork(), heldWork()];
  const running = inTurn(first.work);
  expect(await inTurn(second.work)).toEqual({ kind: 'busy' });
  first.end();
  expect(await running).toEqual({ kind: 'done', value: 'done by hand' });
  expect(second.hasBegun()).toBe(false);
});

test('a work whose turn does not come in time is turned away, never begun, and frees its place in the line', async () => {
  const inTurn = createQueue({ atOnce: 1, waiting: 1, maxWait: 5 });
  const [first, second] = [heldWork(), heldWork()];
  const running = inTurn(first.work);
  expect(await inTurn(second.work)).toEqual({ kind: 'busy' });
  const waiting = inTurn(async () => 'in its turn');
  first.end();
  expect(await running).toMatchObject({ kind: 'done' });
  expect(await waiting).toEqual({ kind: 'done', value: 'in its turn' });
  expect(second.hasBegun()).toBe(false);
});
