const tick = 10;

/**
 * Tells for how long this process has been running since, in ms. Time in which the machine held it up does not count, so
 * that a promised time can be checked on a busy machine, too.
 */
export function startStopwatch(): () => number {
  let ticks = 0;
  const counting = setInterval(() => ticks++, tick).unref();
  return () => {
    clearInterval(counting);
    return ticks * tick;
  };
}
