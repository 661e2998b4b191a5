import { counted, formatNumber } from '../../src/lib/numbers.ts';
import { table } from '../../src/lib/system/terminal.ts';
import type { Phase } from './phases.ts';
import type { Rehearsed } from './rehearse.ts';

/** One event of the timeline. */
export function eventLine(seconds: number, line: string): string {
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${(seconds % 60).toFixed(1).padStart(4, '0')}  ${line}`;
}

/** What clients saw, mode by mode, and what was wrong. */
export function describeRehearsal({ phases, violations }: Rehearsed): string {
  const sum = (of: (phase: Phase) => number): number => phases.reduce((total, phase) => total + of(phase), 0);
  const all: Phase = {
    name: 'all',
    seconds: sum(({ seconds }) => seconds),
    reads: sum(({ reads }) => reads),
    changes: sum(({ changes }) => changes),
    refused: sum(({ refused }) => refused),
    cutOff: sum(({ cutOff }) => cutOff),
    kills: phases.reduce<number[]>((sums, { kills }) => kills.map((one, n) => one + (sums[n] ?? 0)), []),
    readTimes: phases.flatMap(({ readTimes }) => readTimes),
    changeTimes: phases.flatMap(({ changeTimes }) => changeTimes),
  };
  const counts = ['s', 'kills', 'reads', 'changes', 'refused', 'cut off'];
  const times = ['read p50', 'read p99', 'change p50', 'change p99', 'longest change'];
  const rows = [...phases, all].map((phase) => [
    phase.name,
    phase.seconds.toFixed(0),
    phase.kills.join(' + '),
    formatNumber(phase.reads),
    formatNumber(phase.changes),
    formatNumber(phase.refused),
    formatNumber(phase.cutOff),
    milliseconds(phase.readTimes, 0.5),
    milliseconds(phase.readTimes, 0.99),
    milliseconds(phase.changeTimes, 0.5),
    milliseconds(phase.changeTimes, 0.99),
    milliseconds(phase.changeTimes, 1),
  ]);
  return [
    table(['', ...counts, ...times], rows, [...counts, ...times]),
    '',
    'Kills: of each bridge. Refused: names that are taken or denied. Cut off: requests on a connection to a bridge that was killed. Times in ms.',
    `${counted(violations.length, 'violation')}.`,
  ].join('\n');
}

function milliseconds(times: readonly number[], share: number): string {
  const sorted = times.toSorted((one, other) => one - other);
  const at = Math.min(sorted.length - 1, Math.floor(sorted.length * share));
  return sorted[at]?.toFixed(0) ?? '';
}
