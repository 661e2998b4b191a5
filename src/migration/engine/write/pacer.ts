import { setTimeout as sleep } from 'node:timers/promises';

export interface Pacer {
  /**
   * Resolves when this many more may be written, or the signal comes; undefined if they may be written at once.
   * Several calls resolve in the order in which they were made.
   */
  wait: (count: number) => Promise<void> | undefined;
}

/** Spreads records over time: at most `rate` of them a second, or any number without one. */
export function createPacer(rate: number | undefined, signal: AbortSignal): Pacer {
  if (rate === undefined) return { wait: () => undefined };
  let free = performance.now();
  let turn = Promise.resolve();
  const waitUntil = async (start: number, before: Promise<void>): Promise<void> => {
    await before;
    const left = start - performance.now();
    if (left > 0) await sleep(left, undefined, { signal }).catch(() => {});
  };
  return {
    wait: (count) => {
      const start = Math.max(performance.now(), free);
      free = start + (count / rate) * 1000;
      turn = waitUntil(start, turn);
      return turn;
    },
  };
}
