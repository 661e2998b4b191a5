import { Agent, request } from 'node:http';

/** What one request at a time, on each of a few connections, saw: no queue of its own hides a pause. */
export interface Probe {
  /** Ends it; the time of every request, in ms, ascending. */
  stop: () => Promise<number[]>;
}

const lanes = 8;

/** Sends GETs to `url` until stopped. A request that fails counts as one that never ended. */
export function probe(url: string, headers: (user: number) => Record<string, string>): Probe {
  const agent = new Agent({ keepAlive: true, maxSockets: lanes });
  const times: number[] = [];
  const ending = new AbortController();
  const lane = async (number: number): Promise<void> => {
    for (let user = number; !ending.signal.aborted; user = (user + lanes) % 1000) {
      const began = performance.now();
      const status = await send('GET', url, headers(user), undefined, agent).catch(() => 0);
      times.push(status === 200 ? performance.now() - began : Infinity);
    }
  };
  const ended = Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
  return {
    stop: async () => {
      ending.abort();
      await ended;
      agent.destroy();
      return times.toSorted((a, b) => a - b);
    },
  };
}

/** The value that `share` of the ascending values do not exceed. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Sends one request and resolves to the status of its answer, once that has been read. */
export function send(
  method: string,
  url: string,
  headers: Record<string, string>,
  body?: Buffer,
  agent?: Agent,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
      answer.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
