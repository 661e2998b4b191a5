import { setTimeout } from 'node:timers/promises';

/**
 * Runs `work` (which must not throw) again and again, starting each run `ms` after the end of the one before, so that
 * runs never overlap. Does not keep the process alive. Returns what stops it: that aborts the signal, and resolves once
 * the current run has ended; no further run begins.
 */
export function repeat(work: (signal: AbortSignal) => Promise<void>, ms: number): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = (async () => {
    for (;;) {
      try {
        await setTimeout(ms, undefined, { ref: false, signal });
      } catch {
        return;
      }
      await work(signal);
    }
  })();
  return async () => {
    stopping.abort();
    await running;
  };
}
