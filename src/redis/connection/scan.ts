import { Cluster, type Redis } from 'ioredis';
import { totalOf } from '../../lib/numbers.ts';
import { pairsOf } from '../../lib/collections/pairs.ts';
import { infoField, mastersOf, type RedisClient } from './client.ts';

/** How many buckets of the keyspace, or entries of one key, Redis scans in one call: well under a millisecond. */
const scanCount = 1000;

/** Keys moved to another server during the scan: some may have been missed. */
class KeysMovedError extends Error {
  constructor() {
    super(
      'keys moved between servers, or a server was away, while they were being read (resharding, a failover or a restart), so some may have been missed: run this again once that is over',
    );
  }
}

/** Whether a scan, or the client in the commands of one turn, has noticed that keys moved. */
export function isKeysMoved(error: unknown): boolean {
  return error instanceof KeysMovedError || String(error).includes('All keys in the pipeline should belong');
}

/**
 * All keys that begin with `start`, in batches, some of them empty. A key that exists throughout is found, perhaps
 * twice; throws a KeysMovedError if that cannot be guaranteed.
 */
export async function* scanKeys(store: RedisClient, start: string): AsyncGenerator<string[]> {
  const pattern = `${start.replace(/[*?[\]\\^]/g, String.raw`\$&`)}*`;
  const before = await keyDistribution(store);
  for (const node of mastersOf(store)) {
    yield* scan((cursor) => node.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount));
  }
  if ((await keyDistribution(store)) !== before) throw new KeysMovedError();
}

/** All fields and values of a hash, with the guarantees of `scanKeys`. */
export async function* scanPairs(
  store: RedisClient,
  key: string,
): AsyncGenerator<(readonly [string, string])[]> {
  for await (const flat of scanEntries(store, (cursor) => store.hscan(key, cursor, 'COUNT', scanCount))) {
    yield pairsOf(flat);
  }
}

/** All members of a set, with the guarantees of `scanKeys`. */
export async function* scanMembers(store: RedisClient, key: string): AsyncGenerator<string[]> {
  yield* scanEntries(store, (cursor) => store.sscan(key, cursor, 'COUNT', scanCount));
}

type ScanCall = (cursor: string) => Promise<[next: string, entries: string[]]>;

/** The next batch is read while the caller works on one. */
async function* scan(call: ScanCall): AsyncGenerator<string[]> {
  let reading: ReturnType<ScanCall> | undefined = call('0');
  while (reading !== undefined) {
    const [next, entries]: Awaited<ReturnType<ScanCall>> = await reading;
    reading = next === '0' ? undefined : call(next);
    // The caller may want no more.
    reading?.catch(() => {});
    yield entries;
  }
}

/** A cursor is only valid on its server; what a single call returns needs none. */
async function* scanEntries(store: RedisClient, call: ScanCall): AsyncGenerator<string[]> {
  const [next, entries] = await call('0');
  if (next === '0') return yield entries;
  const before = await keyDistribution(store);
  yield* scan(call);
  if ((await keyDistribution(store)) !== before) throw new KeysMovedError();
}

const slotCount = 16_384;

/**
 * Which server has which keys: the same text before and after a scan means that no key moved and no server restarted.
 * Throws a KeysMovedError while a slot is being moved.
 */
async function keyDistribution(store: RedisClient): Promise<string> {
  const servers = await Promise.all(mastersOf(store).map((node) => describeServer(node, store)));
  const covered = totalOf(servers.map(({ slots }) => slots));
  if (store instanceof Cluster && covered !== slotCount) throw new KeysMovedError();
  return servers.map(({ text }) => text).join('\n');
}

async function describeServer(node: Redis, store: RedisClient): Promise<{ text: string; slots: number }> {
  const run = infoField(await node.info('server'), 'run_id') ?? '';
  if (!(store instanceof Cluster)) return { text: run, slots: 0 };
  const nodes = String(await node.call('cluster', 'nodes'));
  const [id, , flags = '', , , , epoch, , ...ranges] =
    nodes
      .split('\n')
      .find((line) => line.includes('myself'))
      ?.split(' ') ?? [];
  if (!flags.includes('master') || ranges.some((range) => range.startsWith('['))) throw new KeysMovedError();
  const slots = totalOf(ranges.map(sizeOf));
  return { text: [run, id, epoch, ...ranges].join(' '), slots };
}

/** The size of a range of slots such as `0-5460` or `7`. */
function sizeOf(range: string): number {
  const [first = 0, last = first] = range.split('-').map(Number);
  return last - first + 1;
}
