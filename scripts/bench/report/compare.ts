import { load, type Load, type Workload } from '../load/load.ts';
import type { Plan } from '../resources.ts';
import { cpuSeconds } from '../../../test/support/run/process-usage.ts';
import type { Served } from '../servers/serve.ts';
import { median, ratio, type Ratio } from './stats.ts';

export interface Contender {
  server: Served;
  work: Workload;
  /** Puts the data into the state that a round begins with; `first` is the number of its first request. */
  prepare?: (first: number) => Promise<void>;
}

/** The results of one contender's rounds. */
export interface Measured {
  requestsPerSecond: number[];
  p99: number[];
  /** Processor time of the server for one request, in µs; empty if the machine does not report it. */
  cpu: number[];
}

/** Far more requests than a round can send, so that the numbers of two rounds never meet. */
const roundSize = 10_000_000;

/**
 * Measures the contenders in turn (A B C A B C …), so that other load on the machine affects them alike, after a short
 * warm-up round of each.
 */
export async function compare<Name extends string>(
  { rounds, seconds }: Pick<Plan, 'rounds' | 'seconds'>,
  contenders: Record<Name, Contender>,
): Promise<Record<Name, Measured>> {
  const names = Object.keys(contenders) as Name[];
  const measured = Object.fromEntries(
    names.map((name) => [name, { requestsPerSecond: [], p99: [], cpu: [] }]),
  ) as unknown as Record<Name, Measured>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      const { server, work, prepare } = contenders[name];
      const first = round * roundSize;
      await prepare?.(first);
      const before = cpuSeconds(server.pid);
      const result = await load(server.url, work, round === 0 ? 1 : seconds, first);
      if (round > 0) note(measured[name], result, seconds, before, cpuSeconds(server.pid));
    }
  }
  return measured;
}

function note(to: Measured, result: Load, seconds: number, before?: number, after?: number): void {
  to.requestsPerSecond.push(result.requestsPerSecond);
  to.p99.push(result.p99);
  if (before !== undefined && after !== undefined) {
    to.cpu.push(((after - before) * 1e6) / (result.requestsPerSecond * seconds));
  }
}

/** How our requests per second compare; with the absolute figures as text. */
export function speed(ours: Measured, theirs: Measured): [Ratio, string] {
  const rate = ({ requestsPerSecond }: Measured) =>
    Math.round(median(requestsPerSecond)).toLocaleString('en');
  // The server's own work for one request: steadier than the rate if others use the machine, too.
  const cpu = [ours, theirs].map((measured) => median(measured.cpu).toFixed(0)).join(' : ');
  return [
    ratio(ours.requestsPerSecond, theirs.requestsPerSecond),
    `${rate(ours)} : ${rate(theirs)} requests/s${ours.cpu.length > 0 ? `, ${cpu} µs CPU each` : ''}`,
  ];
}

/** How the times below which 99 of 100 answers come compare. */
export function tail(ours: Measured, theirs: Measured): [Ratio, string] {
  const ms = ({ p99 }: Measured) => median(p99).toFixed(1);
  return [ratio(ours.p99, theirs.p99), `${ms(ours)} : ${ms(theirs)} ms`];
}
