import { setTimeout } from 'node:timers/promises';

/**
 * Runs `work` (which must not throw) again and again, each time `ms` after the previous run has ended. Does not keep
 * the process alive. Returns a function that stops it: it aborts the signal, and resolves once the current run has
 * ended.
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
