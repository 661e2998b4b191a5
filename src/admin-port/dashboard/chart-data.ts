import { routes } from '../../contract/routes.ts';
import { dayMs } from '../../deprecation/ledger/days.ts';
import type { DashboardData } from './findings.ts';
import { visible } from './text.ts';

/** What the chart draws. Times are in seconds, as the chart library has them. */
export interface ChartData {
  start: number;
  end: number;
  now: number;
  /** The middle of each day. */
  days: number[];
  /** With the number of their colour; calls per day, null where nothing is known. */
  operations: { name: string; colour: number; calls: (number | null)[] }[];
  gaps: [from: number, to: number][];
}

const known: readonly string[] = routes.map(({ operation }) => operation);

/** The operations of a report in the contract's order, each with the number of its colour; others share the last. */
export function colouredOperations(names: readonly string[]): { name: string; colour: number }[] {
  const place = (name: string) => (known.includes(name) ? known.indexOf(name) : known.length);
  return names.map((name) => ({ name, colour: place(name) })).toSorted((a, b) => a.colour - b.colour);
}

/** The chart's numbers: days that were not measured and saw no call have none, rather than nought. */
export function chartData({ days, operations, now }: DashboardData): ChartData {
  const start = Date.parse(days.from) / 1000;
  const names = operations.rows.filter((row) => (row.calls ?? 0) > 0).map((row) => row.operation ?? '');
  return {
    start,
    end: start + (days.rows.length * dayMs) / 1000,
    now: now / 1000,
    days: days.rows.map((_, i) => start + ((i + 0.5) * dayMs) / 1000),
    operations: colouredOperations(names).map(({ name, colour }) => ({
      name: visible(name),
      colour,
      calls: days.rows.map((row) => (row.calls === null ? null : (row.operations[name] ?? 0))),
    })),
    gaps: days.gaps.map(({ from, to }) => [Date.parse(from) / 1000, Date.parse(to) / 1000]),
  };
}
