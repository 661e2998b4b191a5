import { setImmediate as nextTurn } from 'node:timers/promises';

const tick = 10;

/**
 * Tells for how long this process has been running since, in ms. Time in which the machine held it up does not count, so
 * that a promised time can be checked on a busy machine, too.
 */
export function startStopwatch(): () => number {
  let ticks = 0;
  setInterval(() => ticks++, tick).unref();
  return () => ticks * tick;
}

/** Counts the turns of the event loop during an action. */
export async function countingTurns<Result>(
  act: (turnNow: () => number) => Promise<Result>,
): Promise<Result> {
  let turn = 0;
  const ending = new AbortController();
  const counting = (async () => {
    for (; !ending.signal.aborted; turn++) await nextTurn();
  })();
  try {
    return await act(() => turn);
  } finally {
    ending.abort();
    await counting;
  }
}
