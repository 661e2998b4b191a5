import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { users, type Workload } from './load.ts';

/** How many requests to send, over how many connections; `first` is the number of the first one. */
interface Turns {
  connections: number;
  requests: number;
  first: number;
}

/**
 * A few clients that send their next request once they have the answer to the last: what they see is the time that one
 * request takes, not the queue of many.
 */
export type ClosedLoop = ReturnType<typeof openClosedLoop>;

/** In a separate process. */
export function openClosedLoop() {
  const child = fork(fileURLToPath(new URL('one-by-one.mjs', import.meta.url)), { execArgv: [] });
  const exited = once(child, 'exit');
  return {
    /** The time of each request, in ms, ascending. Rejects if any answer was not a success. */
    run: async (url: string, work: Workload, turns: Turns): Promise<number[]> => {
      const result = once(child, 'message');
      child.send({ url, work, users, ...turns });
      const [{ times, failed }] = (await result) as [{ times?: number[]; failed?: string }];
      if (times === undefined) throw new Error(failed);
      return times.toSorted((a, b) => a - b);
    },
    close: async (): Promise<void> => {
      child.kill();
      await exited;
    },
  };
}
