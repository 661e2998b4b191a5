import { dayMs, dayName, dayOf } from '../../lib/days.ts';
import { ledgerDays } from '../ledger/keys.ts';
import { parseInstant } from '../../lib/iso8601.ts';

export const groups = ['day', 'organization', 'client', 'operation', 'status'] as const;
export type Group = (typeof groups)[number];

export interface UsageQuery {
  /** Day numbers, both included. */
  firstDay: number;
  lastDay: number;
  organizationId?: string;
  groupBy: Group;
}

/** As `/usage` and `admin usage` take them. */
export interface QueryFields {
  from?: string | undefined;
  to?: string | undefined;
  organization?: string | undefined;
  group?: string | undefined;
}

export type ReadQuery = { kind: 'ok'; query: UsageQuery } | { kind: 'invalid'; reasons: string[] };

const defaultDays = 30;

/**
 * Reads what a report is asked for: whole UTC days from `from` to `to` (ISO 8601, both included, today at most), by
 * default the 30 up to today, grouped by client. Gives every reason why it cannot.
 */
export function readUsageQuery(fields: QueryFields, now: number): ReadQuery {
  const reasons: string[] = [];
  const day = (text: string | undefined): number | undefined => {
    if (text === undefined || text === '') return undefined;
    const instant = parseInstant(text);
    if (instant.kind === 'ok') return dayOf(instant.value);
    reasons.push(instant.reason);
    return undefined;
  };
  const today = dayOf(now);
  const lastDay = Math.min(day(fields.to) ?? today, today);
  const firstDay = day(fields.from) ?? lastDay - defaultDays + 1;
  if (firstDay > today) reasons.push(`from ${dayName(firstDay)} is after today (${dayName(today)})`);
  else if (firstDay > lastDay) reasons.push(`from ${dayName(firstDay)} is after to ${dayName(lastDay)}`);
  // Days that no ledger holds would each cost a look at Redis.
  const oldest = today - ledgerDays + 1;
  if (firstDay < oldest) {
    reasons.push(`the ledger reaches back at most ${ledgerDays} days, to ${dayName(oldest)}`);
  }
  const groupBy = groups.find((group) => group === (fields.group ?? 'client'));
  if (groupBy === undefined)
    reasons.push(`group is one of ${groups.join(', ')}, not "${fields.group ?? ''}"`);
  if (reasons.length > 0 || groupBy === undefined) return { kind: 'invalid', reasons };
  const { organization } = fields;
  const of = organization === undefined || organization === '' ? {} : { organizationId: organization };
  return { kind: 'ok', query: { firstDay, lastDay, groupBy, ...of } };
}

/** The range in ms. */
export function rangeOf({ firstDay, lastDay }: Pick<UsageQuery, 'firstDay' | 'lastDay'>): {
  start: number;
  end: number;
} {
  return { start: firstDay * dayMs, end: (lastDay + 1) * dayMs };
}
