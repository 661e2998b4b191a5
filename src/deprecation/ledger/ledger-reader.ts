import type { RedisClient } from '../../redis/connection/connect.ts';
import { organizationBase } from '../../redis/keys.ts';
import { dayName } from '../../lib/days.ts';
import { activeOrganizationsKey, dayKey, unknownOrganizationBase, usedKeyKey, usedKeysKey } from './keys.ts';

/** The calls of one key (or none) by one operation and status class, day by day. */
export interface Series {
  /** null: calls that named no organization, or an unknown one. */
  organizationId: string | null;
  keyId: string;
  operation: string;
  status: string;
  /** One number per day of the range read. */
  daily: Float64Array;
}

/** What the ledger knows about a key, whether or not it called in the range. */
interface KeySeen {
  organizationId: string | null;
  keyId: string;
  client: string | undefined;
  /** Operation → first and last use, ms. */
  uses: Map<string, { first: number; last: number }>;
  /** User agent → last seen, ms. */
  agents: Map<string, number>;
}

export interface LedgerContent {
  series: Series[];
  keys: KeySeen[];
}

export interface DayRange {
  /** Day numbers, both included. */
  firstDay: number;
  lastDay: number;
}

/** Organizations read at once, and keys and days of one that are read in one pipeline: requests are served in between. */
const concurrent = 4;
const keysAtOnce = 100;
const daysAtOnce = 8;

/** Reads the counts on these days, and all keys that the ledger knows, of one organization or of all. */
export async function readLedger(
  client: RedisClient,
  prefix: string,
  range: DayRange,
  organizationId?: string,
): Promise<LedgerContent> {
  const content: LedgerContent = { series: [], keys: [] };
  const organizations: { id: string | null; lastDay: number }[] = [];
  if (organizationId === undefined) {
    const active = await client.zrange(activeOrganizationsKey(prefix), '0', '-1');
    const scores = active.length > 0 ? await client.zmscore(activeOrganizationsKey(prefix), ...active) : [];
    organizations.push(...active.map((id, i) => ({ id, lastDay: Number(scores[i] ?? range.lastDay) })));
    organizations.push({ id: null, lastDay: range.lastDay });
  } else organizations.push({ id: organizationId, lastDay: range.lastDay });
  const reader = async () => {
    for (let next = organizations.shift(); next !== undefined; next = organizations.shift()) {
      const { id } = next;
      const base = id === null ? unknownOrganizationBase(prefix) : organizationBase(prefix, id);
      const keys = await readKeys(client, base);
      content.keys.push(...keys.map((key) => ({ organizationId: id, ...key })));
      const lastDay = Math.min(range.lastDay, next.lastDay);
      const series = await readSeries(
        client,
        base,
        { ...range, lastDay },
        range.lastDay - range.firstDay + 1,
      );
      content.series.push(...series.map((one) => ({ organizationId: id, ...one })));
    }
  };
  await Promise.all(Array.from({ length: concurrent }, reader));
  return content;
}

async function readKeys(client: RedisClient, base: string): Promise<Omit<KeySeen, 'organizationId'>[]> {
  const ids = await client.zrange(usedKeysKey(base), '0', '-1');
  const keys: Omit<KeySeen, 'organizationId'>[] = [];
  for (let i = 0; i < ids.length; i += keysAtOnce) {
    const some = ids.slice(i, i + keysAtOnce);
    const pipeline = client.pipeline();
    for (const id of some) pipeline.hgetall(usedKeyKey(base, id));
    const replies = await replyOf<Record<string, string>>(pipeline);
    keys.push(...replies.map((fields, at) => readKey(some[at] ?? '', fields)));
  }
  return keys;
}

function readKey(keyId: string, fields: Record<string, string>): Omit<KeySeen, 'organizationId'> {
  const uses: KeySeen['uses'] = new Map();
  const agents: KeySeen['agents'] = new Map();
  for (const [field, value] of Object.entries(fields)) {
    const name = field.slice(2);
    if (field.startsWith('l:')) {
      const last = Number(value);
      uses.set(name, { first: Number(fields[`f:${name}`] ?? last), last });
    } else if (field.startsWith('a:')) agents.set(name, Number(value));
  }
  return { keyId, client: fields['c'], uses, agents };
}

/** Uses HSCAN, since reading the hash of a busy day at once would block Redis. */
async function readSeries(
  client: RedisClient,
  base: string,
  { firstDay, lastDay }: DayRange,
  days: number,
): Promise<Omit<Series, 'organizationId'>[]> {
  const series = new Map<string, Omit<Series, 'organizationId'>>();
  let open = Array.from({ length: Math.max(0, lastDay - firstDay + 1) }, (_, index) => ({
    index,
    cursor: '0',
  }));
  while (open.length > 0) {
    const some = open.slice(0, daysAtOnce);
    const pipeline = client.pipeline();
    for (const { index, cursor } of some) {
      pipeline.hscan(dayKey(base, dayName(firstDay + index)), cursor, 'COUNT', 2000);
    }
    const replies = await replyOf<[string, string[]]>(pipeline);
    const unfinished = some.flatMap(({ index }, at) => {
      const [cursor, fields] = replies[at] ?? ['0', []];
      for (let i = 0; i < fields.length; i += 2) {
        const field = fields[i] ?? '';
        let one = series.get(field);
        if (one === undefined) {
          one = readField(field, days);
          series.set(field, one);
        }
        // Set, not added: a scan may return a field twice.
        one.daily[index] = Number(fields[i + 1]);
      }
      return cursor === '0' ? [] : [{ index, cursor }];
    });
    open = [...unfinished, ...open.slice(daysAtOnce)];
  }
  return [...series.values()];
}

function readField(field: string, days: number): Omit<Series, 'organizationId'> {
  const status = field.lastIndexOf('|');
  const operation = field.lastIndexOf('|', status - 1);
  return {
    keyId: field.slice(0, operation),
    operation: field.slice(operation + 1, status),
    status: field.slice(status + 1),
    daily: new Float64Array(days),
  };
}

async function replyOf<T>(pipeline: ReturnType<RedisClient['pipeline']>): Promise<T[]> {
  const replies = (await pipeline.exec()) ?? [];
  return replies.map(([error, reply]) => {
    if (error !== null) throw error;
    return reply as T;
  });
}
