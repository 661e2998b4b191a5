import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/**
 * Reads at a fixed rate, whether or not earlier ones were answered. A client that waits for its answers would send
 * fewer reads just when they take long; one that reads as fast as it can would measure its own queue.
 */
export type Probe = ReturnType<typeof openProbe>;

/** A probe of GETs to `url`, with each of these sets of headers in turn; in a separate process. */
export function openProbe(url: string, headers: readonly Record<string, string>[]) {
  const child = fork(fileURLToPath(new URL('probe-reads.mjs', import.meta.url)), { execArgv: [] });
  const exited = once(child, 'exit');
  return {
    start: (): void => void child.send({ go: { url, headers } }),
    /** The time of every read since `start`, in ms, ascending. One that failed counts as one that never ended. */
    stop: async (): Promise<number[]> => {
      const result = once(child, 'message');
      child.send({ stop: true });
      const [times] = (await result) as [(number | null)[]];
      return times.map((ms) => ms ?? Infinity).toSorted((a, b) => a - b);
    },
    close: async (): Promise<void> => {
      child.kill();
      await exited;
    },
  };
}

/** The value that `share` of the ascending values do not exceed. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
