import { dayMs, dayName } from '../../lib/days.ts';
import { moreKeys, unattributedKey } from '../ledger/tally.ts';
import { measuredIn, type Measured, type Usage } from './usage.ts';
import { rangeOf, type Group } from './usage-query.ts';

interface Trend {
  last7Days: number;
  previous7Days: number;
  /** 0.5: half as many again; null where there were none before. */
  change: number | null;
  /** Whether both weeks were measured throughout. */
  measured: boolean;
}

/** One line of a report. Which of the names it has depends on the grouping. */
export interface UsageRow {
  day?: string;
  /** null: unknown organizations. */
  organization?: string | null;
  client?: string;
  operation?: string;
  status?: string;
  calls: number;
  /** Of all calls in the range, 0 to 1. */
  share: number;
  attributed: number;
  unattributed: number;
  measured: Measured;
  /** Calls per day of the range. Empty for a single day. */
  daily: number[];
  trend: Trend | null;
  /** ms; null where the ledger does not keep it for such a group. */
  firstSeen: number | null;
  lastSeen: number | null;
  /** When the last call was, where that is a day or more ago. */
  quietSince: number | null;
  /** Whether that silence was measured throughout. */
  quietMeasured: boolean | null;
  operations: Record<string, number>;
  /** How many keys the group's calls ever came with, and some of their public ids. */
  keys: number;
  keyIds: string[];
  userAgents: { userAgent: string; lastSeen: number }[];
}

/** How people call the caller behind a key: its client label, else the key's public id. */
export function clientName(keyId: string, label: string | undefined): string {
  if (keyId === unattributedKey) return '(unattributed)';
  if (keyId === moreKeys) return '(more keys)';
  return label === undefined || label === '' ? keyId : label;
}

interface Gathered {
  names: Pick<UsageRow, 'day' | 'organization' | 'client' | 'operation' | 'status'>;
  daily: Float64Array;
  attributed: number;
  unattributed: number;
  first: number;
  last: number;
  operations: Map<string, number>;
  keyIds: Set<string>;
  agents: Map<string, number>;
}

/**
 * The usage as rows, most calls first (days in order). Clients and organizations that the ledger remembers have a
 * row even where they did not call in the range; so has each day.
 */
export function groupUsage(usage: Usage, groupBy: Group): UsageRow[] {
  const { firstDay, lastDay } = usage.query;
  const days = lastDay - firstDay + 1;
  const offset = firstDay - usage.readFrom;
  const labels = new Map(usage.keys.map((key) => [`${key.organizationId ?? ''}\n${key.keyId}`, key.client]));
  const groups = new Map<string, Gathered>();
  const gather = (names: Gathered['names']): Gathered => {
    const id = JSON.stringify(names);
    let group = groups.get(id);
    if (group === undefined) {
      group = {
        names,
        daily: new Float64Array(offset + days),
        attributed: 0,
        unattributed: 0,
        first: Infinity,
        last: -Infinity,
        operations: new Map(),
        keyIds: new Set(),
        agents: new Map(),
      };
      groups.set(id, group);
    }
    return group;
  };
  const namesOf = (who: { organizationId: string | null; keyId: string }): Gathered['names'] => {
    if (groupBy === 'organization') return { organization: who.organizationId };
    const label = labels.get(`${who.organizationId ?? ''}\n${who.keyId}`);
    return { organization: who.organizationId, client: clientName(who.keyId, label) };
  };

  if (groupBy === 'day') return dayRows(usage);
  for (const one of usage.series) {
    const group = gather(
      groupBy === 'operation'
        ? { operation: one.operation }
        : groupBy === 'status'
          ? { status: one.status }
          : namesOf(one),
    );
    let calls = 0;
    one.daily.forEach((n, i) => {
      group.daily[i] = (group.daily[i] ?? 0) + n;
      if (i >= offset) calls += n;
    });
    if (one.keyId === unattributedKey) group.unattributed += calls;
    else group.attributed += calls;
    if (calls > 0) group.operations.set(one.operation, (group.operations.get(one.operation) ?? 0) + calls);
  }
  if (groupBy !== 'status') {
    for (const key of usage.keys) {
      for (const [operation, { first, last }] of key.uses) {
        const group = gather(groupBy === 'operation' ? { operation } : namesOf(key));
        group.first = Math.min(group.first, first);
        group.last = Math.max(group.last, last);
        if (key.keyId !== unattributedKey && key.keyId !== moreKeys) group.keyIds.add(key.keyId);
        for (const [agent, at] of key.agents) {
          group.agents.set(agent, Math.max(group.agents.get(agent) ?? 0, at));
        }
      }
    }
  }
  const all = [...groups.values()];
  const total = all.reduce((sum, { attributed, unattributed }) => sum + attributed + unattributed, 0);
  const measured = measuredIn(usage, rangeOf(usage.query));
  return all
    .map((group) => row(usage, group, { total, measured, offset }))
    .toSorted((a, b) => b.calls - a.calls || (b.lastSeen ?? 0) - (a.lastSeen ?? 0));
}

const mostAgents = 20;

function row(
  usage: Usage,
  group: Gathered,
  { total, measured, offset }: { total: number; measured: Measured; offset: number },
): UsageRow {
  const calls = group.attributed + group.unattributed;
  const lastSeen = group.last === -Infinity ? null : group.last;
  const quiet = lastSeen !== null && usage.now - lastSeen >= dayMs;
  return {
    ...group.names,
    calls,
    share: total === 0 ? 0 : calls / total,
    attributed: group.attributed,
    unattributed: group.unattributed,
    measured,
    daily: [...group.daily.subarray(offset)],
    trend: trendOf(usage, group.daily),
    firstSeen: group.first === Infinity ? null : group.first,
    lastSeen,
    quietSince: quiet ? lastSeen : null,
    quietMeasured: quiet ? measuredIn(usage, { start: lastSeen, end: usage.now }) === 'yes' : null,
    operations: Object.fromEntries(group.operations),
    keys: group.keyIds.size,
    keyIds: [...group.keyIds].slice(0, mostAgents),
    userAgents: Array.from(group.agents, ([userAgent, at]) => ({ userAgent, lastSeen: at }))
      .toSorted((a, b) => b.lastSeen - a.lastSeen)
      .slice(0, mostAgents),
  };
}

/** The range's last seven days against the seven before; `daily` ends with the range. */
function trendOf(usage: Usage, daily: Float64Array): Trend {
  const sum = (from: number, to: number | undefined) => daily.slice(from, to).reduce((a, b) => a + b, 0);
  const last7Days = sum(-7, undefined);
  const previous7Days = sum(-14, -7);
  const { end } = rangeOf(usage.query);
  return {
    last7Days,
    previous7Days,
    change: previous7Days === 0 ? null : last7Days / previous7Days - 1,
    measured: measuredIn(usage, { start: end - 14 * dayMs, end }) === 'yes',
  };
}

function dayRows(usage: Usage): UsageRow[] {
  const { firstDay, lastDay } = usage.query;
  const rows = Array.from({ length: lastDay - firstDay + 1 }, (_, i) => ({
    day: dayName(firstDay + i),
    attributed: 0,
    unattributed: 0,
    operations: new Map<string, number>(),
    measured: measuredIn(usage, rangeOf({ firstDay: firstDay + i, lastDay: firstDay + i })),
  }));
  let total = 0;
  for (const { keyId, operation, daily } of usage.series) {
    rows.forEach((one, i) => {
      const calls = daily[i + firstDay - usage.readFrom] ?? 0;
      if (calls === 0) return;
      total += calls;
      one[keyId === unattributedKey ? 'unattributed' : 'attributed'] += calls;
      one.operations.set(operation, (one.operations.get(operation) ?? 0) + calls);
    });
  }
  return rows.map(({ day, attributed, unattributed, operations, measured }) => ({
    day,
    calls: attributed + unattributed,
    share: total === 0 ? 0 : (attributed + unattributed) / total,
    attributed,
    unattributed,
    measured,
    daily: [],
    trend: null,
    firstSeen: null,
    lastSeen: null,
    quietSince: null,
    quietMeasured: null,
    operations: Object.fromEntries(operations),
    keys: 0,
    keyIds: [],
    userAgents: [],
  }));
}
