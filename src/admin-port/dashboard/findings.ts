import { setImmediate } from 'node:timers/promises';
import type { RedisClient } from '../../redis/connection/connect.ts';
import { activeOrganizationsKey } from '../../deprecation/ledger/keys.ts';
import { reportOf, type UsageReport } from '../../deprecation/reports/report.ts';
import type { UsageQuery } from '../../deprecation/reports/usage-query.ts';
import { readUsage } from '../../deprecation/reports/usage.ts';

/** What the ledger says, in the three ways the page shows it, as of `now` (ms). */
export interface DashboardData {
  now: number;
  days: UsageReport;
  operations: UsageReport;
  clients: UsageReport;
  /** Those that have called lately, the latest first. */
  organizations: string[];
}

const mostOrganizations = 1000;

/** Reads the ledger once for all that the page shows. */
async function readFindings(
  client: RedisClient,
  prefix: string,
  query: UsageQuery,
  now: number,
): Promise<DashboardData> {
  const [usage, organizations] = await Promise.all([
    readUsage(client, prefix, query, now),
    client.zrevrange(activeOrganizationsKey(prefix), 0, mostOrganizations - 1),
  ]);
  // Each may take some ten milliseconds, and clients of the contract want to be answered between them.
  const days = reportOf(usage, 'day');
  await setImmediate();
  const operations = reportOf(usage, 'operation');
  await setImmediate();
  const clients = reportOf(usage, 'client');
  await setImmediate();
  return { now, days, operations, clients, organizations };
}

/** Everybody who looks at the same within so many ms shares one reading. */
const sharedMs = 5000;

/** Reads findings so that many open pages cost Redis no more than one. A failed reading is not kept. */
export function createFindings(
  client: RedisClient,
  prefix: string,
  now: () => number,
): (query: UsageQuery) => Promise<DashboardData> {
  const readings = new Map<string, { at: number; findings: Promise<DashboardData> }>();
  return async ({ firstDay, lastDay, organizationId, groupBy }) => {
    const query = { firstDay, lastDay, groupBy, ...(organizationId !== undefined && { organizationId }) };
    const id = JSON.stringify(query);
    const at = now();
    for (const [old, reading] of readings) if (at - reading.at >= sharedMs) readings.delete(old);
    const shared = readings.get(id);
    if (shared !== undefined) return await shared.findings;
    const findings = readFindings(client, prefix, query, at);
    readings.set(id, { at, findings });
    try {
      return await findings;
    } catch (error) {
      readings.delete(id);
      throw error;
    }
  };
}
