/** Repeats an operation of a store until it is done in time: the machine may be too slow for its time limit. */
export async function patiently<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!String(error).includes('TimeoutError')) throw error;
    }
  }
}
