import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Requests to send, by 64 connections at once, each request by the next of `users` users. */
export interface Workload {
  method: 'GET' | 'PUT' | 'POST';
  path: string;
  organization: string;
  /**
   * Templates: `{user}` is the user's number, `{n}` the request's, `{turn}` how many requests the user has made,
   * `{nextTurn}` one more.
   */
  apiKey: string;
  body?: string;
}

export interface Load {
  requestsPerSecond: number;
  /** In ms. */
  p50: number;
  p99: number;
}

export const users = 1000;
const connections = 64;

interface Result {
  requests: number;
  seconds: number;
  p50: number;
  p99: number;
  failed: number;
}

const run = promisify(execFile);
const hasWrk = spawnSync('wrk', ['-v']).error === undefined;

/** The load generator: wrk if it is installed, else autocannon (which uses more CPU itself, so that all ratios come closer to 1). */
export const generator = hasWrk ? 'wrk' : 'autocannon';

/**
 * Sends the workload to `url` for this many seconds, from a separate process. `first` is the number of its first
 * request. Rejects if any answer was not a success, since the figures would be meaningless.
 */
export async function load(url: string, work: Workload, seconds: number, first = 0): Promise<Load> {
  const [command, ...args] = hasWrk ? wrk(url, work, seconds, first) : autocannon(url, work, seconds, first);
  const { stdout } = await run(command, args, { maxBuffer: 1 << 24 });
  const text = /^RESULT (.*)$/m.exec(stdout)?.[1];
  if (text === undefined) throw new Error(`${generator} gave no result:\n${stdout}`);
  const result = JSON.parse(text) as Result;
  if (result.failed > 0) {
    throw new Error(
      `${result.failed} of ${result.requests} requests failed: ${work.method} ${url}${work.path}`,
    );
  }
  return { requestsPerSecond: result.requests / result.seconds, p50: result.p50, p99: result.p99 };
}

function beside(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

function wrk(url: string, work: Workload, seconds: number, first: number): [string, ...string[]] {
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', beside('load.lua'), url, '--'];
  const { method, path, apiKey, organization, body } = work;
  const script = [method, path, apiKey, organization, String(users), String(first), body ?? ''];
  return ['wrk', ...options, ...script];
}

function autocannon(url: string, work: Workload, seconds: number, first: number): [string, ...string[]] {
  const order = JSON.stringify({ url, work, seconds, first, users, connections });
  return [process.execPath, beside('load-autocannon.mjs'), order];
}
