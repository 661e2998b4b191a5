/** Runs a bounded number of tasks at a time, and reports their results in the order in which they were started. */
export interface OrderedPool {
  /** Resolves when there is room for the next one. Rejects when a task has failed. */
  add: <Result>(work: Promise<Result>, onDone?: (result: Result) => void) => Promise<void>;
  /** Resolves when all are done. Rejects when a task has failed. */
  drain: () => Promise<void>;
}

/**
 * Gives a pool to `start`. Resolves when all tasks are done; when one has failed, or `start` has, rejects once none is
 * under way any more.
 */
export async function withOrderedPool(
  width: number,
  start: (pool: OrderedPool) => Promise<void>,
): Promise<void> {
  const tasks: { work: Promise<unknown>; end: () => Promise<void> }[] = [];
  const shrinkTo = async (count: number): Promise<void> => {
    while (tasks.length > count) await tasks.shift()?.end();
  };
  const drain = async (): Promise<void> => await shrinkTo(0);
  const add: OrderedPool['add'] = async (work, onDone) => {
    // A failure is reported when it is the task's turn.
    work.catch(() => {});
    const end = async (): Promise<void> => {
      const result = await work;
      onDone?.(result);
    };
    tasks.push({ work, end });
    await shrinkTo(width - 1);
  };
  try {
    await start({ add, drain });
    await drain();
  } finally {
    await Promise.allSettled(tasks.map(({ work }) => work));
  }
}
