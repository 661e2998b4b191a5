import { groupBy } from '../../../src/lib/collections/group-by.ts';
import { formatNumber } from '../../../src/lib/numbers.ts';
import { table } from '../../../src/lib/system/terminal.ts';
import type { Step } from './steps.ts';

/** The outcome of a switch during which something was stopped at one of its commands. */
export interface CutoverResult {
  name: string;
  step: Step;
  stopped: string;
  /** Whether the new mode came into force. */
  isSwitched: boolean;
  /** The last line of the tool's output. */
  said: string;
  calls: number;
  unavailable: number;
  broken: number;
  /** The longest time that a change, and a read, took, in ms. */
  slowestChange: number;
  slowestRead: number;
  violations: string[];
}

/** The outcome in one line, and the violations. */
export function describeResult({ name, step, stopped, said, violations }: CutoverResult): string {
  return [
    `${name}, ${step}, ${stopped}: ${said}`,
    ...violations.slice(0, 5).map((one) => `  VIOLATION: ${one}`),
  ].join('\n');
}

/** One row for each switch, step and what was stopped there. */
export function describeCutoverResults(results: readonly CutoverResult[]): string {
  const figures = [
    'points',
    'switched',
    'requests',
    '5xx',
    'broken',
    'slowest change',
    'slowest read',
    'violations',
  ];
  const groups = groupBy(results, ({ name, step, stopped }) => `${name}\n${step}\n${stopped}`);
  const sum = (group: readonly CutoverResult[], of: (one: CutoverResult) => number): string =>
    formatNumber(group.reduce((total, one) => total + of(one), 0));
  const slowest = (group: readonly CutoverResult[], of: (one: CutoverResult) => number): string =>
    `${(Math.max(...group.map(of)) / 1000).toFixed(1)} s`;
  const rows = [...groups].map(([key, group]) => [
    ...key.split('\n'),
    formatNumber(group.length),
    sum(group, ({ isSwitched }) => Number(isSwitched)),
    sum(group, ({ calls }) => calls),
    sum(group, ({ unavailable }) => unavailable),
    sum(group, ({ broken }) => broken),
    slowest(group, ({ slowestChange }) => slowestChange),
    slowest(group, ({ slowestRead }) => slowestRead),
    sum(group, ({ violations }) => violations.length),
  ]);
  return table(['switch', 'step', 'stopped', ...figures], rows, figures);
}
