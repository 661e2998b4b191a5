import { setImmediate } from 'node:timers/promises';
import { dayMs } from '../../lib/days.ts';
import type { Html } from '../../lib/html.ts';
import type { RedisClient } from '../../redis/connection/connect.ts';
import { activeOrganizationsKey } from '../../deprecation/ledger/keys.ts';
import { unattributedKey } from '../../deprecation/ledger/tally.ts';
import { clientName, type ReportRow } from '../../deprecation/reports/group-usage.ts';
import { reportOf, type UsageReport } from '../../deprecation/reports/report.ts';
import { readUsage } from '../../deprecation/reports/usage.ts';
import { sparkline } from './components/sparkline.ts';
import type { DashboardQuery } from './query.ts';

/** What the page shows of the ledger, as of `now` (ms). */
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
  /** Organizations that called lately, the latest first. */
  organizations: string[];
}

/** After so many days without a call a client counts as quiet; a job that runs once a week does not. */
export const quietDays = 7;

const mostOrganizations = 1000;

async function readData(
  client: RedisClient,
  prefix: string,
  query: DashboardQuery,
  now: number,
): Promise<DashboardData> {
  const [usage, organizations] = await Promise.all([
    readUsage(client, prefix, query, now),
    client.zrevrange(activeOrganizationsKey(prefix), 0, mostOrganizations - 1),
  ]);
  // Each report may take ten milliseconds or more: requests of the API are answered in between.
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
  const split: Pick<DashboardData, 'calling' | 'quiet' | 'unattributed'> = {
    calling: [],
    quiet: [],
    unattributed: [],
  };
  for (const row of clients.rows.toSorted((a, b) => seen(b) - seen(a))) split[kindOf(row)].push(row);
  return { now, days, operations, clients, breakdown, ...split, organizations };
}

/** How long a reading of the ledger is shared by everybody who asks for the same, in ms. */
const sharedMs = 5000;

/** Reads the data for a page; many open pages cost Redis no more than one. A failed reading is not kept. */
export function createDashboardReader(
  client: RedisClient,
  prefix: string,
  now: () => number,
): (query: DashboardQuery) => Promise<DashboardData> {
  const readings = new Map<string, { at: number; data: Promise<DashboardData> }>();
  return async (query) => {
    const { firstDay, lastDay, organizationId, groupBy } = query;
    const id = JSON.stringify([firstDay, lastDay, organizationId, groupBy]);
    const at = now();
    for (const [old, reading] of readings) if (at - reading.at >= sharedMs) readings.delete(old);
    const shared = readings.get(id);
    if (shared !== undefined) return await shared.data;
    const data = readData(client, prefix, query, at);
    readings.set(id, { at, data });
    try {
      return await data;
    } catch (error) {
      readings.delete(id);
      throw error;
    }
  };
}

/** A row's calls per day, with holes where nothing was measured. */
export function trendLine({ daily }: ReportRow, { days }: DashboardData): Html {
  return sparkline(daily.map((calls, i) => (days.rows[i]?.calls == null ? null : calls)));
}
