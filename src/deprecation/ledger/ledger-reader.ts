import type { RedisClient } from '../../redis/connection/client.ts';
import { gathererOf } from '../../redis/connection/script-loader.ts';
import { organizationBase } from '../../redis/keys.ts';
import { dayName } from '../../lib/days.ts';
import { forEachConcurrently } from '../../lib/collections/for-each-concurrently.ts';
import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import { groupBy } from '../../lib/collections/group-by.ts';
import { pairsOf } from '../../lib/collections/pairs.ts';
import { totalOf } from '../../lib/numbers.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { activeOrganizationsKey, dayKey, unknownOrganizationBase, usedKeyKey, usedKeysKey } from './keys.ts';

/** What the ledger knows about a key, whether or not it called on the days that were read. */
export interface KeySeen extends Awaited<ReturnType<typeof readKey>> {
  /** null: calls that named no organization, or an unknown one. */
  organizationId: string | null;
  series: readonly Series[];
}

/** When a key was last used, ms. */
export function lastUse({ uses }: KeySeen): number {
  return Math.max(...Array.from(uses.values(), ({ last }) => last));
}

/**
 * How many calls succeeded on the days that were read, or on the last `days` of them. Without a valid key, only the legacy
 * service can have served them: with one that it knows and Redis lacks.
 */
export function callsServed({ series }: Pick<KeySeen, 'series'>, days = Infinity): number {
  return totalOf(
    series
      .filter(({ status }) => status === '2xx')
      .map(({ daily }) => totalOf(daily.subarray(Math.max(0, daily.length - days)))),
  );
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

/** Reads all keys that the ledger knows, of one organization or of all, with their calls on these days. */
export async function readLedger(
  store: RedisClient,
  prefix: string,
  range: DayRange,
  organizationId?: string,
): Promise<KeySeen[]> {
  const keys: KeySeen[] = [];
  const organizations: [id: string | null, lastCall: number][] = [[organizationId ?? null, range.lastDay]];
  if (organizationId === undefined) {
    const active = await store.zrange(activeOrganizationsKey(prefix), '0', '-1', 'WITHSCORES');
    for (const [id, day] of pairsOf(active)) organizations.push([id, Number(day)]);
  }
  await forEachConcurrently(organizations, concurrent, async ([id, lastCall]) => {
    const base = id === null ? unknownOrganizationBase(prefix) : organizationBase(prefix, id);
    const called = groupBy(await readSeries(store, base, { ...range, lastCall }), ({ keyId }) => keyId);
    // After the calls, so that no key is missing that is first used meanwhile.
    const known = new Set(await store.zrange(usedKeysKey(base), '0', '-1'));
    // Another program may have removed it from the list.
    for (const keyId of called.keys()) known.add(keyId);
    for await (const some of yieldingChunks(known, keysAtOnce)) {
      for (const key of await Promise.all(some.map((keyId) => readKey(store, base, keyId)))) {
        keys.push({ ...key, organizationId: id, series: called.get(key.keyId) ?? [] });
      }
    }
  });
  return keys;
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
): Promise<Series[]> {
  const gather = gathererOf(store);
  const series = new Map<string, Series>();
  const readDay = async (index: number): Promise<void> => {
    const key = dayKey(base, dayName(firstDay + index));
    let cursor = '0';
    do {
      // Writing each command to the socket by itself would take most of the time.
      gather();
      const [next, fields] = await store.hscan(key, cursor, 'COUNT', 2000);
      cursor = next;
      for (const [field, text] of pairsOf(fields)) {
        const calls = numberIn(text);
        if (calls === undefined) continue;
        const one = getOrInsert(series, field, () => emptySeries(field, lastDay - firstDay + 1));
        // Set, not added: a scan may return a field twice.
        one.daily[index] = calls;
      }
    } while (cursor !== '0');
  };
  const days = Array(Math.max(0, Math.min(lastDay, lastCall) - firstDay + 1)).keys();
  for await (const some of yieldingChunks(days, daysAtOnce)) await Promise.all(some.map(readDay));
  return [...series.values()];
}

/** The calls of one key (or none) by one operation and status class, day by day. */
type Series = ReturnType<typeof emptySeries>;

function emptySeries(field: string, days: number) {
  // A field of a day's hash: <key id>|<operation>|<status class>.
  const status = field.lastIndexOf('|');
  const operation = field.lastIndexOf('|', status - 1);
  return {
    keyId: field.slice(0, operation),
    operation: field.slice(operation + 1, status),
    status: field.slice(status + 1),
    /** One number per day of the range read. */
    daily: new Float64Array(days),
  };
}
