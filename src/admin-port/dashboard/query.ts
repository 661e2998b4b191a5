import { dayName, dayOf } from '../../lib/days.ts';
import { ledgerDays } from '../../deprecation/ledger/keys.ts';
import { readUsageQuery, type ReadQuery, type UsageQuery } from '../../deprecation/reports/usage-query.ts';

/** The query in the dashboard's address. */
export interface DashboardQuery extends UsageQuery {
  /** The length of a period that ends today; undefined if the address has its own first and last day. */
  days: number | undefined;
  /** Whether every row is listed, however many there are. */
  all: boolean;
}

export const dashboardParameters = ['organization', 'days', 'from', 'to', 'group', 'clients'] as const;
export const periods = [7, 30, 90, 365] as const;
const defaultGroup = 'client,status';

/** Reads a dashboard's address; by default it shows 30 days of all organizations. */
export function readDashboardQuery(
  fields: Partial<Record<(typeof dashboardParameters)[number], string>>,
  now: number,
  found: readonly string[],
): ReadQuery<DashboardQuery> {
  const { organization, from, to, group = defaultGroup, clients } = fields;
  const ownDates = (from ?? '') !== '' || (to ?? '') !== '';
  const { days: text = '30' } = fields;
  const days = ownDates ? undefined : Number(text);
  if (days !== undefined && !(/^\d+$/.test(text) && days >= 1 && days <= ledgerDays)) {
    const reason = `days is a number from 1 to ${ledgerDays}, not "${text}"`;
    return { kind: 'invalid', reasons: [...found, reason] };
  }
  const since = days === undefined ? from : dayName(dayOf(now) - days + 1);
  const read = readUsageQuery({ organization, from: since, to, group }, now, found);
  return read.kind === 'ok' ? { kind: 'ok', query: { ...read.query, days, all: clients === 'all' } } : read;
}

/** The query part of the address that shows this query with a change. */
export function addressOf(query: DashboardQuery, change: Partial<DashboardQuery> = {}): string {
  return addressWith(parametersOf({ ...query, ...change }));
}

/** The parameters of that address; what is absent or undefined is the default. */
export function parametersOf(query: DashboardQuery): Record<string, string | undefined> {
  const { organizationId, days, firstDay, lastDay, groupBy, all } = query;
  return {
    organization: organizationId,
    ...(days === undefined ? { from: dayName(firstDay), to: dayName(lastDay) } : { days: String(days) }),
    group: groupBy.join() === defaultGroup ? undefined : groupBy.join(),
    clients: all ? 'all' : undefined,
  };
}

/** The address of `/usage` that gives the same as CSV. */
export function csvAddress({ organizationId, firstDay, lastDay }: DashboardQuery, group: string): string {
  const range = { from: dayName(firstDay), to: dayName(lastDay) };
  return `/usage${addressWith({ format: 'csv', group, ...range, organization: organizationId })}`;
}

function addressWith(fields: Record<string, string | undefined>): string {
  const given = Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined);
  return `?${new URLSearchParams(given).toString()}`;
}
