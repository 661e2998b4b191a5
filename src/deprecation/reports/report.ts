import type { RedisClient } from '../../redis/connection/connect.ts';
import { toCsv } from './csv.ts';
import { dayName, minuteMs } from '../../lib/days.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import type { Window } from '../../lib/iso8601.ts';
import { groupUsage, type UsageRow } from './usage-groups.ts';
import { rangeOf, type Group, type UsageQuery } from './usage-query.ts';
import { gapsIn, measuredIn, readUsage, type Measured, type Usage } from './usage.ts';

/** A report as `/usage` and `admin usage --json` give it. Times are ISO 8601. */
export interface UsageReport {
  generatedAt: string;
  /** First and last day, both included. */
  from: string;
  to: string;
  organization: string | null;
  groupBy: Group;
  calls: number;
  attributed: number;
  unattributed: number;
  measured: Measured;
  /** When calls in the range may have gone uncounted. */
  gaps: { from: string; to: string; minutes: number }[];
  rows: ReportRow[];
}

/** `calls` is null where there were none and nothing was measured. */
export type ReportRow = Omit<UsageRow, 'calls' | 'firstSeen' | 'lastSeen' | 'quietSince' | 'userAgents'> & {
  calls: number | null;
  firstSeen: string | null;
  lastSeen: string | null;
  quietSince: string | null;
  userAgents: { userAgent: string; lastSeen: string }[];
};

/** Reads the ledger and reports on it as of `now` (ms). */
export async function reportUsage(
  client: RedisClient,
  prefix: string,
  query: UsageQuery,
  now: number,
): Promise<UsageReport> {
  return reportOf(await readUsage(client, prefix, query, now), query.groupBy);
}

/** The report on usage that has been read. */
export function reportOf(usage: Usage, groupBy: Group): UsageReport {
  const rows = groupUsage(usage, groupBy);
  const range = rangeOf(usage.query);
  const sum = (pick: (row: UsageRow) => number) => rows.reduce((total, row) => total + pick(row), 0);
  return {
    generatedAt: formatInstant(usage.now),
    from: dayName(usage.query.firstDay),
    to: dayName(usage.query.lastDay),
    organization: usage.query.organizationId ?? null,
    groupBy,
    calls: sum(({ calls }) => calls),
    attributed: sum(({ attributed }) => attributed),
    unattributed: sum(({ unattributed }) => unattributed),
    measured: measuredIn(usage, range),
    gaps: gapsIn(usage, range).map(writeGap),
    rows: rows.map((row) => ({
      ...row,
      calls: row.calls === 0 && row.measured === 'no' ? null : row.calls,
      firstSeen: instant(row.firstSeen),
      lastSeen: instant(row.lastSeen),
      quietSince: instant(row.quietSince),
      userAgents: row.userAgents.map(({ userAgent, lastSeen }) => ({
        userAgent,
        lastSeen: formatInstant(lastSeen),
      })),
    })),
  };
}

const instant = (ms: number | null): string | null => (ms === null ? null : formatInstant(ms));

/** A gap as reports write it. */
export function writeGap({ start, end }: Window): { from: string; to: string; minutes: number } {
  return { from: formatInstant(start), to: formatInstant(end), minutes: Math.ceil((end - start) / minuteMs) };
}

type Column = [title: string, of: (row: ReportRow) => string | number | null];

const nameColumns: Record<Group, Column[]> = {
  day: [['day', ({ day }) => day ?? '']],
  organization: [['organization', ({ organization }) => organization ?? '(unknown)']],
  client: [
    ['organization', ({ organization }) => organization ?? '(unknown)'],
    ['client', ({ client }) => client ?? ''],
  ],
  operation: [['operation', ({ operation }) => operation ?? '']],
  status: [['status', ({ status }) => status ?? '']],
};

const callColumns: Column[] = [
  ['calls', ({ calls }) => calls ?? 'not measured'],
  ['share', ({ share }) => round(share)],
  ['unattributed', ({ unattributed }) => unattributed],
];

const measuredColumn: Column = ['measured', ({ measured }) => measured];

const trendColumns: Column[] = [
  ['last 7 days', ({ trend }) => trend?.last7Days ?? null],
  ['7 days before', ({ trend }) => trend?.previous7Days ?? null],
  [
    'trend',
    ({ trend }) => (trend?.change === undefined || trend.change === null ? null : round(trend.change)),
  ],
];

const seenColumns: Column[] = [
  ['first seen', ({ firstSeen }) => firstSeen],
  ['last seen', ({ lastSeen }) => lastSeen],
  ['quiet since', ({ quietSince }) => quietSince],
  ['silence measured', ({ quietMeasured }) => (quietMeasured === null ? null : quietMeasured ? 'yes' : 'no')],
];

const whoColumns: Column[] = [
  ['keys', ({ keyIds, keys }) => keyIds.join(' ') + (keys > keyIds.length ? ' …' : '')],
  ['user agents', ({ userAgents }) => userAgents.map(({ userAgent }) => userAgent).join(' | ')],
];

const round = (ratio: number) => Math.round(ratio * 1000) / 1000;

function columnsOf(groupBy: Group): Column[] {
  const columns = [...nameColumns[groupBy], ...callColumns];
  if (groupBy === 'day') return [...columns, measuredColumn];
  if (groupBy === 'status') return [...columns, ...trendColumns, measuredColumn];
  return [...columns, ...trendColumns, ...seenColumns, measuredColumn, ...whoColumns];
}

/** The report's rows as CSV with a line of titles. */
export function reportCsv(report: UsageReport): string {
  const columns = columnsOf(report.groupBy);
  return toCsv([
    columns.map(([title]) => title.replaceAll(' ', '_')),
    ...report.rows.map((row) => columns.map(([, of]) => of(row))),
  ]);
}
