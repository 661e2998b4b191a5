import type { RedisClient } from '../../redis/connection/client.ts';
import { gathererOf } from '../../redis/connection/script-loader.ts';
import { organizationBase } from '../../redis/keys.ts';
import { listOrganizations } from '../../redis/organizations.ts';
import { dayMs, dayName, dayOf } from '../../lib/days.ts';
import { forEachConcurrently } from '../../lib/collections/for-each-concurrently.ts';
import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import { groupBy } from '../../lib/collections/group-by.ts';
import { pairsOf } from '../../lib/collections/pairs.ts';
import { formatNumber, totalOf } from '../../lib/numbers.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { activeOrganizationsKey, dayKey, unknownOrganizationBase, usedKeyKey, usedKeysKey } from './keys.ts';

/** What the ledger knows about a key, whether or not it called on the days that were read. */
export interface KeySeen extends Awaited<ReturnType<typeof readKey>> {
  /** null: calls that named no organization, or an unknown one. */
  organizationId: string | null;
  series: readonly Series[];
}

/**
 * When a key last called each operation (ms), as of `now`: by its own record or, where that lacks a call that the days have,
 * at the latest time at which that call can have been.
 */
export function lastUses({ uses, series }: KeySeen, now: number): Map<string, number> {
  const lasts = new Map(Array.from(uses, ([operation, { last }]) => [operation, last]));
  for (const { operation, daily } of series) {
    const day = Math.max(...daily.keys());
    if (day > dayOf(lasts.get(operation) ?? -Infinity)) {
      lasts.set(operation, Math.min((day + 1) * dayMs - 1, now));
    }
  }
  return lasts;
}

/** When a key was last used (ms), as of `now`. */
export function lastUse(key: KeySeen, now: number): number {
  return Math.max(...lastUses(key, now).values());
}

/** A report of more would take this process, which may also serve the API, too much time and memory. */
export class ReportTooLargeError extends Error {
  constructor(what: string, remedy: string) {
    super(`the report would ${what}: ask for ${remedy}`);
  }
}

/** Counts, uses and user agents that one report is made of: half a gigabyte of memory. */
const maxEntries = 2_000_000;

/**
 * How many calls succeeded on the days that were read, or on those since `firstDay`. Without a valid key, only the legacy
 * service can have served them: with one that it knows and Redis lacks.
 */
export function callsServed({ series }: Pick<KeySeen, 'series'>, firstDay = -Infinity): number {
  return totalOf(
    series.filter(({ status }) => status === '2xx').map(({ daily }) => callsOn(daily, firstDay)),
  );
}

/** Day number → calls, of the days with any: most clients call on few days, or not at all. */
export type Daily = ReadonlyMap<number, number>;

/** The calls on the days from `firstDay` to `lastDay`. */
export function callsOn(daily: Daily, firstDay = -Infinity, lastDay = Infinity): number {
  let total = 0;
  for (const [day, calls] of daily) if (day >= firstDay && day <= lastDay) total += calls;
  return total;
}

interface DayRange {
  /** Day numbers, both included. */
  firstDay: number;
  lastDay: number;
}

/** Organizations read at once, and keys and days of one read in one round trip: requests are served in between. */
const concurrent = 4;
const keysAtOnce = 100;
const daysAtOnce = 8;

interface Reading {
  /** Absent for all organizations. */
  organizationId?: string | undefined;
  /** Of which keys only the last day with calls is kept, however many they are; by default, of none. */
  isLastDayEnough?: (keyId: string) => boolean;
  signal?: AbortSignal | undefined;
  /** How many counts, uses and user agents it may read. */
  most?: number;
}

/**
 * Reads all keys that the ledger knows, of one organization or of all, with their calls on these days. Throws a
 * ReportTooLargeError; throws if aborted.
 */
export async function readLedger(
  store: RedisClient,
  prefix: string,
  range: DayRange,
  { organizationId, isLastDayEnough = () => false, signal, most = maxEntries }: Reading = {},
): Promise<KeySeen[]> {
  const keys: KeySeen[] = [];
  let entries = 0;
  const take = (more: number): void => {
    signal?.throwIfAborted();
    entries += more;
    if (entries <= most) return;
    const what = `be made of more than ${formatNumber(most)} entries of the ledger`;
    throw new ReportTooLargeError(what, 'fewer days, or for one organization');
  };
  const organizations: Iterable<[id: string | null, lastDay: number]> =
    organizationId === undefined
      ? await findOrganizations(store, prefix, range.lastDay, signal)
      : [[organizationId, range.lastDay]];
  await forEachConcurrently(organizations, concurrent, async ([id, lastCall]) => {
    const base = id === null ? unknownOrganizationBase(prefix) : organizationBase(prefix, id);
    const series = await readSeries(store, base, { ...range, lastCall }, isLastDayEnough, take);
    const called = groupBy(series, ({ keyId }) => keyId);
    // After the calls, so that no key is missing that is first used meanwhile.
    const known = new Set(await store.zrange(usedKeysKey(base), '0', '-1'));
    // Another program may have removed it from the list.
    for (const keyId of called.keys()) known.add(keyId);
    for await (const some of yieldingChunks(known, keysAtOnce, signal)) {
      for (const key of await Promise.all(some.map((keyId) => readKey(store, base, keyId)))) {
        take(key.uses.size + key.agents.size);
        keys.push({ ...key, organizationId: id, series: called.get(key.keyId) ?? [] });
      }
    }
  });
  return keys;
}

/**
 * The organizations that the ledger knows, and null for the unknown ones, with the day of the last call of each; of one that
 * the ledger's list lacks, which may have been lost, it is the day `lastDay`.
 */
async function findOrganizations(
  store: RedisClient,
  prefix: string,
  lastDay: number,
  signal?: AbortSignal,
): Promise<Map<string | null, number>> {
  const found = new Map<string | null, number>([[null, lastDay]]);
  const active = await store.zrange(activeOrganizationsKey(prefix), '0', '-1', 'WITHSCORES');
  for (const [id, day] of pairsOf(active)) found.set(id, Number(day));
  const unlisted = (await listOrganizations(store, prefix)).filter((id) => !found.has(id));
  const gather = gathererOf(store);
  for await (const ids of yieldingChunks(unlisted, keysAtOnce, signal)) {
    const have = await Promise.all(
      ids.map((id) => {
        gather();
        return store.exists(usedKeysKey(organizationBase(prefix, id)));
      }),
    );
    for (const [i, id] of ids.entries()) if (have[i] === 1) found.set(id, lastDay);
  }
  return found;
}

async function readKey(store: RedisClient, base: string, keyId: string) {
  const fields = await store.hgetall(usedKeyKey(base, keyId));
  /** Operation → first and last use, ms. */
  const uses = new Map<string, { first: number; last: number }>();
  /** User agent → last seen, ms. */
  const agents = new Map<string, number>();
  for (const [field, value] of Object.entries(fields)) {
    const name = field.slice(2);
    const last = numberIn(value);
    if (last === undefined) continue;
    if (field.startsWith('l:')) uses.set(name, { first: numberIn(fields[`f:${name}`]) ?? last, last });
    else if (field.startsWith('a:')) agents.set(name, last);
  }
  return { keyId, client: fields['c'], uses, agents };
}

/** A count, or a time in ms; undefined for a text that no script has written. */
function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Uses HSCAN, since HGETALL of a busy day would block Redis. There were no calls after the day `lastCall`. */
async function readSeries(
  store: RedisClient,
  base: string,
  { firstDay, lastDay, lastCall }: DayRange & { lastCall: number },
  isLastDayEnough: (keyId: string) => boolean,
  take: (entries: number) => void,
): Promise<Series[]> {
  const gather = gathererOf(store);
  const series = new Map<string, Series>();
  const readDay = async (index: number): Promise<void> => {
    const day = firstDay + index;
    const key = dayKey(base, dayName(day));
    let cursor = '0';
    do {
      // Writing each command to the socket by itself would take most of the time.
      gather();
      const [next, fields] = await store.hscan(key, cursor, 'COUNT', 2000);
      cursor = next;
      for (const [field, text] of pairsOf(fields)) {
        const calls = numberIn(text);
        if (calls === undefined) continue;
        const { keyId, daily } = getOrInsert(series, field, () => emptySeries(field));
        take(1);
        if (isLastDayEnough(keyId)) {
          // Days are read several at once.
          const [kept = day] = daily.keys();
          if (kept > day) continue;
          daily.clear();
        }
        // Set, not added: a scan may return a field twice.
        daily.set(day, calls);
      }
    } while (cursor !== '0');
  };
  const days = Array(Math.max(0, Math.min(lastDay, lastCall) - firstDay + 1)).keys();
  for await (const some of yieldingChunks(days, daysAtOnce)) await Promise.all(some.map(readDay));
  return [...series.values()];
}

/** The calls of one key (or none) by one operation and status class, day by day. */
type Series = ReturnType<typeof emptySeries>;

function emptySeries(field: string) {
  // A field of a day's hash: <key id>|<operation>|<status class>.
  const status = field.lastIndexOf('|');
  const operation = field.lastIndexOf('|', status - 1);
  return {
    keyId: field.slice(0, operation),
    operation: field.slice(operation + 1, status),
    status: field.slice(status + 1),
    daily: new Map<number, number>(),
  };
}
