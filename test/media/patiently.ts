/**
 * Repeats an operation of a store until it is done in time: the machine may be too slow for its time limit. A save that
 * ran out of time goes on in the background, so the next attempt may meet the file it is writing (EEXIST).
 */
export async function patiently<Result>(work: () => Promise<Result>): Promise<Result> {
  let late = false;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const timedOut = String(error).includes('TimeoutError');
      const metItself = late && String(error).includes('EEXIST');
      if (!timedOut && !metItself) throw error;
      late = true;
    }
  }
}
