/** Runs a bounded number of tasks at a time, and reports their results in the order in which they were started. */
export interface OrderedPool {
  /** Resolves when there is room for the next one. Rejects when a task has failed. */
  add: <Result>(
    work: Promise<Result>,
    onDone?: (result: Result) => Promise<void> | undefined | void,
  ) => Promise<void>;
  /** Resolves when all are done. */
  drain: () => Promise<void>;
}

export function createOrderedPool(width: number): OrderedPool {
  const ends: (() => Promise<void>)[] = [];
  return {
    add: async (work, onDone) => {
      // A failure is reported when it is the task's turn.
      work.catch(() => {});
      ends.push(async () => {
        const result = await work;
        await onDone?.(result);
      });
      while (ends.length >= width) await ends.shift()?.();
    },
    drain: async () => {
      while (ends.length > 0) await ends.shift()?.();
    },
  };
}
