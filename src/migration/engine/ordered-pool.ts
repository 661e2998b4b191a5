/** Keeps a bounded number of works under way, and tells of their ends in the order of their beginnings. */
export interface Window<Result> {
  /** Resolves when there is room for the next one. Rejects when a work has failed. */
  add: (work: Promise<Result>, onDone?: () => Promise<void> | undefined) => Promise<void>;
  /** Resolves when all are done. */
  drain: () => Promise<void>;
}

export function createOrderedPool<Result>(width: number, onResult: (result: Result) => void): Window<Result> {
  const works: { work: Promise<Result>; onDone: (() => Promise<void> | undefined) | undefined }[] = [];
  const finishFirst = async (): Promise<void> => {
    const first = works.shift();
    if (first === undefined) return;
    onResult(await first.work);
    await first.onDone?.();
  };
  return {
    add: async (work, onDone) => {
      // A failure is told when the work's turn comes.
      work.catch(() => {});
      works.push({ work, onDone });
      while (works.length >= width) await finishFirst();
    },
    drain: async () => {
      while (works.length > 0) await finishFirst();
    },
  };
}
