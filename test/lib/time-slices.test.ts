import { describe, expect, test } from '@jest/globals';
import { yieldingChunks } from '../../src/lib/time-slices.ts';
import { countingTurns } from '../support/stopwatch.ts';

/** Works on every chunk for longer than a time slice; resolves to the event loop's turns in which it did. */
async function work(items: readonly number[], turnNow: () => number): Promise<number[]> {
  const turns: number[] = [];
  for await (const _ of yieldingChunks(items, 1)) {
    turns.push(turnNow());
    for (const begun = performance.now(); performance.now() - begun < 1;);
  }
  return turns;
}

describe('yieldingChunks', () => {
  test('yields all items in order, in chunks', async () => {
    const chunks: number[][] = [];
    for await (const chunk of yieldingChunks([1, 2, 3, 4, 5], 2)) chunks.push(chunk);
    expect(chunks).toEqual([[1, 2], [3, 4], [5]]);
    for await (const chunk of yieldingChunks([])) expect(chunk).toBe('none');
  });

  test('yields to the event loop after each long chunk', async () => {
    const turns = await countingTurns((now) => work([1, 2, 3, 4, 5], now));
    expect(new Set(turns).size).toBe(5);
  });

  test('does not wait after the last chunk, however long that took', async () => {
    await countingTurns(async (now) => {
      const turns = await work([1], now);
      expect(turns).toEqual([now()]);
    });
  });

  test('does not let two jobs run in the same turn of the event loop', async () => {
    const items = Array.from({ length: 20 }, (_, n) => n);
    const works = await countingTurns((now) => Promise.all([work(items, now), work(items, now)]));
    // Both start in the turn of the call.
    const turns = works.flatMap((own) => own.slice(1));
    expect(new Set(turns).size).toBe(turns.length);
  });
});
