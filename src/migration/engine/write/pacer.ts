import { setTimeout as sleep } from 'node:timers/promises';

export type Pacer = ReturnType<typeof createPacer>;

/** Spreads records over time: at most `rate` of them a second. */
export function createPacer(rate: number, signal: AbortSignal) {
  let free = performance.now();
  let turn = Promise.resolve();
  const waitUntil = async (start: number, before: Promise<void>): Promise<void> => {
    await before;
    const left = start - performance.now();
    if (left > 0) await sleep(left, undefined, { signal }).catch(() => {});
  };
  return {
    /**
     * Resolves when this many more may be written, or the signal comes. Several calls resolve in the order in which they
     * were made.
     */
    wait: (count: number): Promise<void> => {
      const start = Math.max(performance.now(), free);
      free = start + (1000 * count) / rate;
      turn = waitUntil(start, turn);
      return turn;
    },
  };
}
