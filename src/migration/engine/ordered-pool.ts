/** Keeps a bounded number of works under way, and tells of their ends in the order of their beginnings. */
export interface OrderedPool {
  /** Resolves when there is room for the next one. Rejects when a work has failed. */
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
      // A failure is told when the work's turn comes.
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
