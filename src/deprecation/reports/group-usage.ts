import { dayMs, dayName } from '../../lib/days.ts';
import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import { formatNumber, totalOf } from '../../lib/numbers.ts';
import { yieldingItems } from '../../lib/time-slices.ts';
import { callsOn, lastUse, ReportTooLargeError, type Daily, type KeySeen } from '../ledger/ledger-reader.ts';
import { isAttributed, moreKeys, unattributedKey, uncheckedKey } from '../ledger/tally.ts';
import { rangeOf, type Group } from './usage-query.ts';
import { measuredIn, trendOf, type Measured, type Usage } from './usage.ts';

/**
 * One field for each group of the report; a client comes with its organization, which is null for calls that named none
 * or an unknown one.
 */
type Names = Partial<Record<Exclude<Group, 'organization'>, string> & { organization: string | null }>;

/** The names of a row, and what tells it from others that look the same. */
interface Name {
  names: Names;
  id: string;
}

/** A row of a report. Times are ISO 8601, or null if the ledger does not record them for this grouping. */
export type ReportRow = Awaited<ReturnType<typeof rowsOf>>[number];

/** How a caller is named: the client label of its key, or else the key's public id. */
export function clientName(keyId: string, label?: string): string {
  if (keyId === unattributedKey) return '(unattributed)';
  if (keyId === uncheckedKey) return '(key not checked)';
  if (keyId === moreKeys) return '(more keys)';
  return label === undefined || label === '' ? keyId : label;
}

/** The name of a row in one of its groups. */
export function nameIn(row: Names, group: Group): string {
  return group === 'organization' ? (row.organization ?? '(unknown)') : (row[group] ?? '');
}

/** Rows of a report: more would take this process, which also serves the API, too much time and memory. */
const maxRows = 100_000;

/** User agents and key ids listed for a row. */
const maxListed = 20;

type GroupTotals = ReturnType<typeof emptyTotals>;

/** The totals of a row before any call is added: about the whole range, or about one day. */
function emptyTotals(names: Names, day: number | undefined) {
  return {
    names: day === undefined ? names : { day: dayName(day), ...names },
    day,
    /** Empty in a row about one day. */
    daily: new Map() as Daily,
    sum: undefined as Map<number, number> | undefined,
    attributed: 0,
    unattributed: 0,
    first: Infinity,
    last: -Infinity,
    operations: new Map<string, number>(),
    keyIds: new Set<string>(),
    agents: new Map<string, number>(),
  };
}

/**
 * The usage as rows, by day and then by most calls. Clients that the ledger remembers have a row even without calls in
 * the range, unless rows are by day or status. Grouped by day alone, every day has a row. It takes turns with the
 * requests that this process serves.
 */
export async function groupUsage(usage: Usage, groupBy: readonly Group[]): Promise<ReportRow[]> {
  const { firstDay, lastDay } = usage.query;
  const { signal } = usage;
  const byDay = groupBy.includes('day');
  const nameOf = namer(groupBy);
  const groups = new Map<string, GroupTotals>();
  const groupOf = ({ names, id }: Name, day?: number): GroupTotals =>
    getOrInsert(groups, `${day ?? ''} ${id}`, () => {
      if (groups.size >= maxRows) {
        const remedy = 'fewer days, one organization, or fewer groups';
        throw new ReportTooLargeError(`have more than ${formatNumber(maxRows)} rows`, remedy);
      }
      return emptyTotals(names, day);
    });
  const addCalls = (group: GroupTotals, keyId: string, operation: string, calls: number): void => {
    group[isAttributed(keyId) ? 'attributed' : 'unattributed'] += calls;
    if (calls > 0) group.operations.set(operation, (group.operations.get(operation) ?? 0) + calls);
  };

  if (byDay && groupBy.length === 1)
    for (let day = firstDay; day <= lastDay; day += 1) groupOf(named({}, false), day);
  for await (const { key, series } of yieldingItems(seriesOf(usage.keys), signal)) {
    const { keyId, operation, status, daily } = series;
    const name = nameOf(key, operation, status);
    if (byDay) {
      for (const [day, calls] of daily) {
        if (day >= firstDay && calls > 0) addCalls(groupOf(name, day), keyId, operation, calls);
      }
    } else {
      const group = groupOf(name);
      addDaily(group, series.daily);
      addCalls(group, keyId, operation, callsOn(series.daily, firstDay));
    }
  }
  if (!byDay && !groupBy.includes('status')) {
    for await (const key of yieldingItems(usage.keys, signal)) {
      for (const [operation, { first, last }] of key.uses) {
        const group = groupOf(nameOf(key, operation));
        group.first = Math.min(group.first, first);
        group.last = Math.max(group.last, last);
        if (isAttributed(key.keyId) && key.keyId !== moreKeys) group.keyIds.add(key.keyId);
        for (const [agent, at] of key.agents) {
          group.agents.set(agent, Math.max(group.agents.get(agent) ?? 0, at));
        }
      }
    }
  }
  const all = [...groups.values()].toSorted(
    (a, b) => (a.day ?? 0) - (b.day ?? 0) || callsOf(b) - callsOf(a) || b.last - a.last,
  );
  return await rowsOf(usage, all);
}

function* seriesOf(keys: readonly KeySeen[]) {
  for (const key of keys) for (const series of key.series) yield { key, series };
}

function namer(groupBy: readonly Group[]) {
  const by = new Set(groupBy);
  return ({ organizationId, keyId, client }: KeySeen, operation: string, status = ''): Name => {
    const shown = clientName(keyId, client);
    // A label may look like the id of another key, or like `(more keys)`.
    const isLabel = by.has('client') && shown !== clientName(keyId);
    const names = {
      ...((by.has('organization') || by.has('client')) && { organization: organizationId }),
      ...(by.has('client') && { client: shown }),
      ...(by.has('operation') && { operation }),
      ...(by.has('status') && { status }),
    };
    return named(names, isLabel);
  };
}

function named(names: Names, isLabel: boolean): Name {
  return { names, id: `${isLabel} ${JSON.stringify(names)}` };
}

async function rowsOf(usage: Usage, groups: readonly GroupTotals[]) {
  const { firstDay, lastDay } = usage.query;
  const total = totalOf(groups.map(callsOf));
  const wholeRange = measuredIn(usage, rangeOf(usage.query));
  const ofDays = new Map<number, Measured>();
  const measuredOn = (day: number): Measured =>
    getOrInsert(ofDays, day, () => measuredIn(usage, rangeOf({ firstDay: day, lastDay: day })));
  const unchecked = usage.keys.filter(({ keyId }) => keyId === uncheckedKey);
  const lastUnchecked = new Map<unknown, number>(
    unchecked.map((key) => [key.organizationId, lastUse(key, usage.now)]),
  );
  const rowOf = (group: GroupTotals) => {
    const calls = callsOf(group);
    const { names, day, daily, first, last } = group;
    const measured = day === undefined ? wholeRange : measuredOn(day);
    const lastSeen = last === -Infinity ? null : formatInstant(last);
    const quiet = usage.now - last >= dayMs && lastSeen !== null;
    return {
      ...names,
      /** null if there were none and nothing was measured. */
      calls: calls === 0 && measured === 'no' ? null : calls,
      /** Of all calls in the range, 0 to 1. */
      share: total === 0 ? 0 : calls / total,
      attributed: group.attributed,
      unattributed: group.unattributed,
      measured,
      /** Calls on each day of the range; empty in a row about one day. */
      get daily(): number[] {
        // Made when it is shown, since that of very many rows would fill the memory.
        return day === undefined ? daysOf(daily, firstDay, lastDay) : [];
      },
      trend: day === undefined ? trendOf(usage, daily) : null,
      firstSeen: first === Infinity ? null : formatInstant(first),
      lastSeen,
      /**
       * The last call, if it was a day ago or more, and whether the time since then was measured throughout, without a
       * call of the organization whose key was not checked.
       */
      quietSince: quiet ? lastSeen : null,
      quietMeasured: quiet
        ? measuredIn(usage, { start: last, end: usage.now }) === 'yes' &&
          (lastUnchecked.get(names.organization) ?? last) <= last
        : null,
      operations: Object.fromEntries(group.operations),
      /** The number of keys that the calls came with, and the public ids of some. */
      keys: group.keyIds.size,
      keyIds: [...group.keyIds].slice(0, maxListed),
      userAgents: Array.from(group.agents)
        .toSorted(([, a], [, b]) => b - a)
        .slice(0, maxListed)
        .map(([userAgent, at]) => ({ userAgent, lastSeen: formatInstant(at) })),
    };
  };
  const rows: ReturnType<typeof rowOf>[] = [];
  for await (const group of yieldingItems(groups, usage.signal)) rows.push(rowOf(group));
  return rows;
}

const callsOf = ({ attributed, unattributed }: GroupTotals): number => attributed + unattributed;

/** Adds calls on some days. Most rows have those of one series, which are not copied. */
function addDaily(group: GroupTotals, daily: Daily): void {
  if (group.daily.size === 0) group.daily = daily;
  else {
    const sum = (group.sum ??= new Map(group.daily));
    for (const [day, calls] of daily) sum.set(day, (sum.get(day) ?? 0) + calls);
    group.daily = sum;
  }
}

/** The calls on each day from `firstDay` to `lastDay`. */
function daysOf(daily: Daily, firstDay: number, lastDay: number): number[] {
  return Array.from({ length: lastDay - firstDay + 1 }, (_, i) => daily.get(firstDay + i) ?? 0);
}
