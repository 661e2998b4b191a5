import { dayMs, dayOf } from '../../lib/days.ts';
import { groupBy } from '../../lib/collections/group-by.ts';
import { operations as contractOperations } from '../../contract/operations.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { activeOrganizationsKey } from '../../deprecation/ledger/keys.ts';
import { callsServed, lastUse } from '../../deprecation/ledger/ledger-reader.ts';
import { unattributedKey, uncheckedKey } from '../../deprecation/ledger/tally.ts';
import { clientName, type ReportRow } from '../../deprecation/reports/group-usage.ts';
import { reportOf } from '../../deprecation/reports/report.ts';
import type { Group } from '../../deprecation/reports/usage-query.ts';
import { readUsage, type Usage } from '../../deprecation/reports/usage.ts';
import type { DashboardQuery } from './query.ts';

export type DashboardData = Awaited<ReturnType<typeof readDashboardData>>;

/** A client without a call for this many days is quiet. A weekly job is not. */
export const quietDays = 7;

/** How many organizations can be chosen. */
export const maxOrganizations = 1000;

/** Reads the data of a page as of `now` (ms). Throws a ReportTooLargeError. */
export async function readDashboardData(
  store: RedisClient,
  prefix: string,
  query: DashboardQuery,
  now: number,
) {
  const [usage, organizations] = await Promise.all([
    readUsage(store, prefix, query, now),
    store.zrevrange(activeOrganizationsKey(prefix), 0, maxOrganizations - 1),
  ]);
  const report = async (...groups: Group[]) => await reportOf(usage, groups);
  const { trend = null } = (await report()).rows[0] ?? {};
  const days = await report('day');
  const operations = coloured((await report('operation')).rows);
  const clients = await report('client');
  const isByClient = query.groupBy.join() === 'client';
  const breakdown = isByClient ? clients : await report(...query.groupBy);
  const seen = (row: ReportRow) => Date.parse(row.lastSeen ?? '') || 0;
  const isRecent = (row: ReportRow) => now - seen(row) < quietDays * dayMs;
  const isOf = (keyId: string) => (row: ReportRow) => row.client === clientName(keyId) && row.keys === 0;
  const isUnchecked = isOf(uncheckedKey);
  const isInvalid = isOf(unattributedKey);
  const kindOf = (row: ReportRow) => {
    if (isUnchecked(row) || isInvalid(row)) return 'unattributed';
    return isRecent(row) ? 'calling' : 'quiet';
  };
  const latestFirst = clients.rows.toSorted((a, b) => seen(b) - seen(a));
  const { calling = [], quiet = [], unattributed = [] } = Object.fromEntries(groupBy(latestFirst, kindOf));
  return {
    now,
    /** The trend of all calls together. */
    trend,
    days,
    operations,
    /** The report by the groups of the query. */
    breakdown,
    /** The clients that called in the last `quietDays` days, and those that did not; the latest call first. */
    calling,
    quiet,
    /** Calls without a valid key or with one that was not checked, by the organization they claimed. */
    unattributed,
    /** Whether there were calls whose key was not checked: in the last `quietDays` days, and in the period. */
    uncheckedLately: unattributed.some((row) => isUnchecked(row) && isRecent(row)),
    uncheckedInPeriod: unattributed.some((row) => isUnchecked(row) && row.calls !== 0),
    /** Whether the legacy service may have served calls in the last `quietDays` days whose key is unknown here. */
    servedLately: mayHaveServedLately(usage),
    /** Organizations with calls in the ledger, the latest first. */
    organizations,
  };
}

/** The last call without a valid key is known, but its status only if the last `quietDays` days were read. */
function mayHaveServedLately({ keys, query, now }: Usage): boolean {
  const daysMissing = dayOf(now) - query.lastDay;
  return keys.some(
    (key) =>
      key.keyId === unattributedKey &&
      now - lastUse(key, now) < quietDays * dayMs &&
      (daysMissing > 0 || callsServed(key, dayOf(now) - quietDays) > 0),
  );
}

const contractOrder: readonly string[] = contractOperations;

/** Operations in the contract's order, each with the number of its colour; others share the last. */
function coloured(rows: readonly ReportRow[]) {
  return rows
    .map((row) => {
      const name = row.operation ?? '';
      const place = contractOrder.indexOf(name);
      return { ...row, name, colour: place === -1 ? contractOrder.length : place };
    })
    .toSorted((a, b) => a.colour - b.colour);
}
