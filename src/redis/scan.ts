import { mastersOf, type RedisClient } from './connection/client.ts';

/** How many slots of the keyspace, or entries of one key, Redis looks at in one call: well under a millisecond. */
const scanCount = 1000;

/**
 * All keys that begin with `start`, in batches, a cluster's masters one after the other. A key that is there all
 * the time is found, perhaps twice. An empty batch is given too, so that the caller can do what is due meanwhile.
 */
export async function* scanKeys(store: RedisClient, start: string): AsyncGenerator<string[]> {
  const pattern = `${start.replace(/[*?[\]\\^]/g, String.raw`\$&`)}*`;
  for (const node of mastersOf(store)) {
    let cursor = '0';
    do {
      const [next, keys] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount);
      yield keys;
      cursor = next;
    } while (cursor !== '0');
  }
}

/** All fields and values of a hash, in batches; one that is there all the time is found, perhaps twice. */
export async function* scanPairs(
  store: RedisClient,
  key: string,
): AsyncGenerator<(readonly [string, string])[]> {
  let cursor = '0';
  do {
    const [next, flat] = await store.hscan(key, cursor, 'COUNT', scanCount);
    yield pairsOf(flat);
    cursor = next;
  } while (cursor !== '0');
}

/** All members of a set, in batches; one that is there all the time is found, perhaps twice. */
export async function* scanMembers(store: RedisClient, key: string): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const [next, members] = await store.sscan(key, cursor, 'COUNT', scanCount);
    yield members;
    cursor = next;
  } while (cursor !== '0');
}

function pairsOf(flat: readonly string[]): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) pairs.push([flat[at] ?? '', flat[at + 1] ?? '']);
  return pairs;
}
