import { Agent, request } from 'node:http';

/** Reads that come by the clock while something else goes on. */
export interface Probe {
  /** Ends it; resolves to the time of every read in ms, ascending. */
  stop: () => Promise<number[]>;
}

/** Reads each second: a small part of what one process can answer, so that they queue behind nothing of their own. */
const rate = 500;

/**
 * Sends GETs to `url` at a fixed rate until stopped, whatever has become of those before. A client that waits for
 * its answers would ask seldom just when they take long, and one that asks as fast as it can would measure its own
 * queue. A read that fails counts as one that never ended.
 */
export function probe(url: string, headers: (user: number) => Record<string, string>): Probe {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const reads: Promise<number>[] = [];
  const read = async (user: number): Promise<number> => {
    const began = performance.now();
    const status = await send('GET', url, headers(user), undefined, agent).catch(() => 0);
    return status === 200 ? performance.now() - began : Infinity;
  };
  const began = performance.now();
  const clock = setInterval(() => {
    const due = ((performance.now() - began) / 1000) * rate;
    while (reads.length < due) reads.push(read(reads.length % 1000));
  }, 1);
  return {
    stop: async () => {
      clearInterval(clock);
      const times = await Promise.all(reads);
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
    const length = body && { 'content-length': String(body.length) };
    const sent = request(url, { method, headers: { ...headers, ...length }, agent }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
      answer.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
