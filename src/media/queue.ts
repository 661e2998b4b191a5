export interface QueueLimits {
  /** Works under way at the same time. */
  atOnce: number;
  /** Works that may wait for their turn; the next one is turned away. */
  waiting: number;
  /** Milliseconds a work waits at most before it is turned away. */
  maxWait: number;
}

/**
 * Bounds how much of a kind of work is under way, and how much waits for it. The returned function runs a
 * work in its turn and gives `done` with its value, or `busy`, the work never begun, when too many wait
 * already or its turn did not come in time. A work's exception is passed on and frees its place.
 */
export function createQueue({ atOnce, waiting, maxWait }: QueueLimits) {
  let running = 0;
  const line: (() => void)[] = [];

  async function turn(): Promise<boolean> {
    if (running < atOnce) {
      running += 1;
      return true;
    }
    if (line.length >= waiting) return false;
    return new Promise((resolve) => {
      const start = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        line.splice(line.indexOf(start), 1);
        resolve(false);
      }, maxWait);
      line.push(start);
    });
  }

  function leave(): void {
    // The place goes straight to the next in line: nobody who comes now can slip in between.
    const next = line.shift();
    if (next === undefined) running -= 1;
    else next();
  }

  return async <T>(work: () => Promise<T>): Promise<{ kind: 'done'; value: T } | { kind: 'busy' }> => {
    if (!(await turn())) return { kind: 'busy' };
    try {
      return { kind: 'done', value: await work() };
    } finally {
      leave();
    }
  };
}
