import { dayMs, dayName, dayOf } from '../../lib/days.ts';
import { parseInstant, type Interval } from '../../lib/iso8601.ts';
import { ledgerDays } from '../ledger/keys.ts';

/** What the rows of a report can be grouped by, in the order of their columns. */
export const groups = ['day', 'organization', 'client', 'operation', 'status'] as const;
export type Group = (typeof groups)[number];

/** What a report is about. */
export interface UsageQuery {
  /** Day numbers, both included. */
  firstDay: number;
  lastDay: number;
  organizationId?: string | undefined;
  groupBy: readonly Group[];
}

/** The fields of a query, as `/usage` and `admin usage` get them. */
type QueryFields = Partial<Record<'from' | 'to' | 'organization' | 'group', string | undefined>>;

export type ReadQuery<Query> = { kind: 'ok'; query: Query } | { kind: 'invalid'; reasons: string[] };

const defaultDays = 30;

/**
 * Reads the query of a report: whole UTC days from `from` to `to` (ISO 8601, both included, today at most), by default
 * the last 30; `group` is one or more groups separated by commas, by default the client. Gives every reason why it
 * cannot be read, after those already found.
 */
export function readUsageQuery(
  fields: QueryFields,
  now: number,
  found: readonly string[] = [],
): ReadQuery<UsageQuery> {
  const reasons = [...found];
  const day = (name: 'from' | 'to'): number | undefined => {
    const text = fields[name] ?? '';
    if (text === '') return undefined;
    const instant = parseInstant(text);
    if (instant.kind === 'ok') return dayOf(instant.value);
    reasons.push(`${name} must be an ISO 8601 day such as 2027-01-31, not "${text}"`);
    return undefined;
  };
  const today = dayOf(now);
  const lastDay = Math.min(day('to') ?? today, today);
  const firstDay = day('from') ?? lastDay - defaultDays + 1;
  if (firstDay > today) reasons.push(`from ${dayName(firstDay)} is after today (${dayName(today)})`);
  else if (firstDay > lastDay) reasons.push(`from ${dayName(firstDay)} is after to ${dayName(lastDay)}`);
  // Each day costs a read from Redis, whether or not the ledger can still have it.
  const oldest = today - ledgerDays + 1;
  if (firstDay < oldest) {
    reasons.push(`the ledger reaches back at most ${ledgerDays} days, to ${dayName(oldest)}`);
  }
  const names = (fields.group ?? 'client').split(',').map((name) => name.trim());
  for (const name of names) {
    if (!groups.some((group) => group === name)) {
      reasons.push(`group must be one or more of ${groups.join(', ')}, separated by commas, not "${name}"`);
    }
  }
  if (reasons.length > 0) return { kind: 'invalid', reasons };
  const groupBy = groups.filter((group) => names.includes(group));
  const organizationId = fields.organization === '' ? undefined : fields.organization;
  return { kind: 'ok', query: { firstDay, lastDay, groupBy, organizationId } };
}

/** The range in ms. */
export function rangeOf({ firstDay, lastDay }: Pick<UsageQuery, 'firstDay' | 'lastDay'>): Interval {
  return { start: firstDay * dayMs, end: (lastDay + 1) * dayMs };
}
