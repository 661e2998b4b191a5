import { dayMs } from '../../lib/days.ts';
import type { Interval } from '../../lib/iso8601.ts';
import { totalOf } from '../../lib/numbers.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { findGaps, readCoverage } from '../ledger/coverage.ts';
import { callsOn, readLedger, type Daily } from '../ledger/ledger-reader.ts';
import { rangeOf, type UsageQuery } from './usage-query.ts';

/** What the ledger says about a range of days, ready to be grouped in any way. */
export type Usage = Awaited<ReturnType<typeof readUsage>>;

/** Whether a period was measured. If it was not (`no`), a 0 means nothing. */
export type Measured = 'yes' | 'partly' | 'no';

/** Reads the usage of a range of days as of `now` (ms). Throws a ReportTooLargeError; throws if aborted. */
export async function readUsage(
  store: RedisClient,
  prefix: string,
  query: Omit<UsageQuery, 'groupBy'>,
  now: number,
  signal?: AbortSignal,
) {
  const { organizationId } = query;
  // Up to 13 days before the range, for the trend.
  const readFrom = Math.min(query.firstDay, query.lastDay - 13);
  const range = { firstDay: readFrom, lastDay: query.lastDay };
  const keys = await readLedger(store, prefix, range, { organizationId, signal });
  let oldest = readFrom * dayMs;
  for (const { uses } of keys) for (const { last } of uses.values()) oldest = Math.min(oldest, last);
  const span = { start: oldest, end: Math.max(now, rangeOf(query).end) };
  const gaps = findGaps(await readCoverage(store, prefix, span), span, now);
  return {
    keys,
    query,
    /** ms */
    now,
    signal,
    /** When calls may have gone uncounted (ms), as far back as any figure of a report reaches. */
    gaps,
  };
}

/** How much of a period, up to `now`, was measured. */
export function measuredIn(usage: Pick<Usage, 'gaps' | 'now'>, { start, end }: Interval): Measured {
  const until = Math.min(end, usage.now);
  if (until <= start) return 'no';
  const missing = totalOf(gapsIn(usage, { start, end: until }).map((gap) => gap.end - gap.start));
  if (missing === 0) return 'yes';
  return missing >= until - start ? 'no' : 'partly';
}

/** The gaps within a period, clipped to it. */
export function gapsIn({ gaps }: Pick<Usage, 'gaps'>, { start, end }: Interval): Interval[] {
  return gaps
    .filter((gap) => gap.start < end && start < gap.end)
    .map((gap) => ({ start: Math.max(gap.start, start), end: Math.min(gap.end, end) }));
}

/** The last seven days of the range compared with the seven before, by calls per day up to the end of the range. */
export function trendOf(usage: Usage, daily: Daily) {
  const { lastDay } = usage.query;
  const last7Days = callsOn(daily, lastDay - 6);
  const previous7Days = callsOn(daily, lastDay - 13, lastDay - 7);
  const { end } = rangeOf(usage.query);
  return {
    last7Days,
    previous7Days,
    /** 0.5 for 50 % more; null if there were no calls before. */
    change: previous7Days === 0 ? null : last7Days / previous7Days - 1,
    /** Whether both weeks were measured throughout. */
    measured: measuredIn(usage, { start: end - 14 * dayMs, end }) === 'yes',
  };
}
