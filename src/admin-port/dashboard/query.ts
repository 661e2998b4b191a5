import { dayMs, dayName, ledgerDays } from '../../deprecation/ledger/days.ts';
import { readUsageQuery, type UsageQuery } from '../../deprecation/reports/usage-query.ts';

/** What a dashboard's address asks for. */
export interface DashboardQuery extends UsageQuery {
  /** The period where it moves with today; otherwise it is from the first to the last day. */
  days: number | undefined;
  /** Whether every client is wanted, however many there are. */
  all: boolean;
}

export const dashboardParameters = ['organization', 'days', 'from', 'to', 'clients'] as const;
export const periods = [7, 30, 90, 365] as const;

type Fields = Partial<Record<(typeof dashboardParameters)[number], string>>;
export type ReadDashboardQuery =
  { kind: 'ok'; query: DashboardQuery } | { kind: 'invalid'; reasons: string[] };

/** Reads a dashboard's address; by default it shows 30 days of all organizations. */
export function readDashboardQuery(fields: Fields, now: number): ReadDashboardQuery {
  const { organization, from, to, clients } = fields;
  const ownDates = (from ?? '') !== '' || (to ?? '') !== '';
  const days = ownDates ? undefined : Number(fields.days ?? 30);
  if (days !== undefined && !(Number.isInteger(days) && days >= 1 && days <= ledgerDays)) {
    return {
      kind: 'invalid',
      reasons: [`days is a number from 1 to ${ledgerDays}, not "${fields.days ?? ''}"`],
    };
  }
  const since = days === undefined ? from : dayName(Math.floor(now / dayMs) - days + 1);
  const read = readUsageQuery({ organization, from: since, to }, now);
  return read.kind === 'invalid'
    ? read
    : { kind: 'ok', query: { ...read.query, days, all: clients === 'all' } };
}

type Change = { days?: number; all?: boolean };

/** The query part of the address that shows this, with a change. */
export function addressOf(query: DashboardQuery, change: Change = {}): string {
  const { organizationId, days, firstDay, lastDay, all } = { ...query, ...change };
  const fields = new URLSearchParams();
  if (organizationId !== undefined) fields.set('organization', organizationId);
  if (days === undefined) {
    fields.set('from', dayName(firstDay));
    fields.set('to', dayName(lastDay));
  } else fields.set('days', String(days));
  if (all) fields.set('clients', 'all');
  return `?${fields.toString()}`;
}

/** Where `/usage` gives the same as CSV. */
export function csvAddress({ organizationId, firstDay, lastDay }: DashboardQuery, group: string): string {
  const fields = new URLSearchParams({ format: 'csv', group, from: dayName(firstDay), to: dayName(lastDay) });
  if (organizationId !== undefined) fields.set('organization', organizationId);
  return `/usage?${fields.toString()}`;
}
