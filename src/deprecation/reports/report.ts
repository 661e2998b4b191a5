import { dayName, minuteMs } from '../../lib/days.ts';
import { formatInstant, type Interval } from '../../lib/iso8601.ts';
import { totalOf } from '../../lib/numbers.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { groupUsage } from './group-usage.ts';
import { rangeOf, type Group, type UsageQuery } from './usage-query.ts';
import { gapsIn, measuredIn, readUsage, type Usage } from './usage.ts';

/** Reads the ledger and reports on it as of `now` (ms). Throws a ReportTooLargeError; throws if aborted. */
export async function reportUsage(
  store: RedisClient,
  prefix: string,
  query: UsageQuery,
  now: number,
  signal?: AbortSignal,
): Promise<UsageReport> {
  return await reportOf(await readUsage(store, prefix, query, now, signal), query.groupBy);
}

/** A report as `/usage` and `admin usage --json` give it. Times are ISO 8601. */
export type UsageReport = Awaited<ReturnType<typeof reportOf>>;

/** The report on usage that has been read; it is made in time slices. */
export async function reportOf(usage: Usage, groupBy: readonly Group[]) {
  const { firstDay, lastDay, organizationId } = usage.query;
  const rows = await groupUsage(usage, groupBy);
  const range = rangeOf(usage.query);
  const attributed = totalOf(rows.map((row) => row.attributed));
  const unattributed = totalOf(rows.map((row) => row.unattributed));
  return {
    generatedAt: formatInstant(usage.now),
    /** First and last day, both included. */
    from: dayName(firstDay),
    to: dayName(lastDay),
    organization: organizationId ?? null,
    /** The groups, separated by commas. */
    groupBy: groupBy.join(','),
    calls: attributed + unattributed,
    attributed,
    unattributed,
    measured: measuredIn(usage, range),
    /** When calls in the range may have gone uncounted. */
    gaps: gapsIn(usage, range).map(toGap),
    rows,
  };
}

export type UnmeasuredGap = ReturnType<typeof toGap>;

/** The minutes of all gaps together. */
export function minutesOf(gaps: readonly UnmeasuredGap[]): number {
  return totalOf(gaps.map(({ minutes }) => minutes));
}

/** When a gap ends, as it is shown, in ms: a gap that has just begun does not look empty. */
export function shownEnd({ to }: UnmeasuredGap): number {
  return Math.ceil(Date.parse(to) / minuteMs) * minuteMs;
}

/** A gap in the form of a report. */
export function toGap({ start, end }: Interval) {
  return { from: formatInstant(start), to: formatInstant(end), minutes: Math.ceil((end - start) / minuteMs) };
}
