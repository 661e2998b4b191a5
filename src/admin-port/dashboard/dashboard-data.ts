import { setImmediate } from 'node:timers/promises';
import { dayMs } from '../../lib/days.ts';
import { groupBy } from '../../lib/group-by.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { activeOrganizationsKey } from '../../deprecation/ledger/keys.ts';
import { unattributedKey } from '../../deprecation/ledger/tally.ts';
import { clientName, type ReportRow } from '../../deprecation/reports/group-usage.ts';
import { reportOf, type UsageReport } from '../../deprecation/reports/report.ts';
import { readUsage } from '../../deprecation/reports/usage.ts';
import type { DashboardQuery } from './query.ts';

/** The data of the page, as of `now` (ms). */
export interface DashboardData {
  now: number;
  days: UsageReport;
  operations: UsageReport;
  clients: UsageReport;
  /** By the groups of the query. */
  breakdown: UsageReport;
  /** The clients that called in the last `quietDays` days, and those that did not; the latest call first. */
  calling: ReportRow[];
  quiet: ReportRow[];
  /** Calls without a valid key, by the organization they claimed. */
  unattributed: ReportRow[];
  /** Organizations with calls in the ledger, the latest first. */
  organizations: string[];
}

/** A client without a call for so many days is quiet. A weekly job is not. */
export const quietDays = 7;

const mostOrganizations = 1000;

/** Reads the data of a page as of `now` (ms). */
export async function readDashboardData(
  client: RedisClient,
  prefix: string,
  query: DashboardQuery,
  now: number,
): Promise<DashboardData> {
  const [usage, organizations] = await Promise.all([
    readUsage(client, prefix, query, now),
    client.zrevrange(activeOrganizationsKey(prefix), 0, mostOrganizations - 1),
  ]);
  // Each report may take ten milliseconds or more: let API requests be answered in between.
  const days = reportOf(usage, ['day']);
  await setImmediate();
  const operations = reportOf(usage, ['operation']);
  await setImmediate();
  const clients = reportOf(usage, ['client']);
  await setImmediate();
  const breakdown = reportOf(usage, query.groupBy);
  const seen = (row: ReportRow) => Date.parse(row.lastSeen ?? '') || 0;
  const kindOf = (row: ReportRow) => {
    if (row.client === clientName(unattributedKey, undefined) && row.keys === 0) return 'unattributed';
    return now - seen(row) < quietDays * dayMs ? 'calling' : 'quiet';
  };
  const latestFirst = clients.rows.toSorted((a, b) => seen(b) - seen(a));
  const { calling = [], quiet = [], unattributed = [] } = Object.fromEntries(groupBy(latestFirst, kindOf));
  return { now, days, operations, clients, breakdown, calling, quiet, unattributed, organizations };
}
