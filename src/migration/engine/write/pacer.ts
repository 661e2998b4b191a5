import { setTimeout as sleep } from 'node:timers/promises';

export interface Pacer {
  /** Resolves when this many more may be written, undefined for at once; also where the signal comes. */
  wait: (count: number) => Promise<void> | undefined;
}

/** Spreads records over time: at most `rate` of them a second, or any number without one. */
export function createPacer(rate: number | undefined, signal: AbortSignal): Pacer {
  if (rate === undefined) return { wait: () => undefined };
  let free = Date.now();
  return {
    wait: async (count) => {
      const now = Date.now();
      const start = Math.max(now, free);
      free = start + (count / rate) * 1000;
      if (start > now) await sleep(start - now, undefined, { signal }).catch(() => {});
    },
  };
}
