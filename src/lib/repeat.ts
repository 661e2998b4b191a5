import { setTimeout } from 'node:timers/promises';

/** Work that is repeated in the background until it is stopped. */
export interface Repeating {
  /** Resolves once the current run has ended; no further run begins. */
  stop: () => Promise<void>;
}

/**
 * Runs `work` (which must not throw) again and again, starting each run `ms` after the end of the one before, so that
 * runs never overlap. Does not keep the process alive.
 */
export function repeat(work: () => Promise<void>, ms: number): Repeating {
  const stopping = new AbortController();
  const running = (async () => {
    for (;;) {
      try {
        await setTimeout(ms, undefined, { ref: false, signal: stopping.signal });
      } catch {
        return;
      }
      await work();
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
