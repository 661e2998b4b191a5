import type { RedisClient } from '../../redis/connection/connect.ts';
import { findGaps, readCoverage } from '../ledger/coverage.ts';
import { dayMs } from '../../lib/days.ts';
import { readLedger, type KeySeen, type Series } from '../ledger/ledger-reader.ts';
import type { Window } from '../../lib/iso8601.ts';
import { rangeOf, type UsageQuery } from './usage-query.ts';

/** What the ledger says about a range of days, ready to be grouped in any way. */
export interface Usage {
  query: Omit<UsageQuery, 'groupBy'>;
  now: number;
  /** First day of `daily` of all series: up to 13 days before the range, for the trend. */
  readFrom: number;
  series: Series[];
  keys: KeySeen[];
  /** When calls may have gone uncounted (ms), from as far back as any number here speaks of. */
  gaps: Window[];
}

/** Whether a stretch of time was measured: `yes`, `partly`, or `no`: then a zero says nothing. */
export type Measured = 'yes' | 'partly' | 'no';

/** Reads the usage of a range of days as of `now` (ms). */
export async function readUsage(
  client: RedisClient,
  prefix: string,
  query: Omit<UsageQuery, 'groupBy'>,
  now: number,
): Promise<Usage> {
  const readFrom = Math.min(query.firstDay, query.lastDay - 13);
  const { series, keys } = await readLedger(
    client,
    prefix,
    { firstDay: readFrom, lastDay: query.lastDay },
    query.organizationId,
  );
  const lastUses = keys.flatMap(({ uses }) => Array.from(uses.values(), ({ last }) => last));
  const oldest = lastUses.reduce((a, b) => Math.min(a, b), readFrom * dayMs);
  const span = { start: oldest, end: Math.max(now, rangeOf(query).end) };
  const gaps = findGaps(await readCoverage(client, prefix, span), span, now);
  return { query, now, readFrom, series, keys, gaps };
}

/** What of a stretch of time up to `now` was measured. */
export function measuredIn(usage: Pick<Usage, 'gaps' | 'now'>, { start, end }: Window): Measured {
  const until = Math.min(end, usage.now);
  if (until <= start) return 'no';
  const missing = gapsIn(usage, { start, end: until }).reduce((sum, gap) => sum + gap.end - gap.start, 0);
  if (missing === 0) return 'yes';
  return missing >= until - start ? 'no' : 'partly';
}

/** The gaps that fall into a stretch of time, cut to it. */
export function gapsIn({ gaps }: Pick<Usage, 'gaps'>, { start, end }: Window): Window[] {
  return gaps
    .filter((gap) => gap.start < end && start < gap.end)
    .map((gap) => ({ start: Math.max(gap.start, start), end: Math.min(gap.end, end) }));
}
