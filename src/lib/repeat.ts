/** Work that goes on in the background until it is stopped. */
export interface Repeating {
  /** Resolves once a run under way has ended; none begins after. */
  stop: () => Promise<void>;
}

/**
 * Runs `work` (which must not throw) every `ms`, the next run beginning that long after the last has ended, so
 * that a slow store is never asked twice at once. Does not keep the process alive.
 */
export function repeat(work: () => Promise<void>, ms: number): Repeating {
  let running = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const later = () => {
    if (stopped) return;
    timer = setTimeout(() => {
      running = work().finally(later);
    }, ms);
    timer.unref();
  };
  later();
  return {
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
