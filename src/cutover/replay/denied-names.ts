import { denylistKey } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { scanPairs } from '../../redis/connection/scan.ts';
import { normalizedName, readWriteSnapshot } from '../../redis/write-snapshot.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';

const namesAtOnce = 500;

/** Those of these names that are denied now. */
export async function deniedAmong(
  store: RedisClient,
  base: string,
  names: Iterable<string>,
): Promise<Set<string>> {
  const snapshot = await readWriteSnapshot(store, base);
  const denied = new Set<string>();
  for await (const part of yieldingChunks(names, namesAtOnce)) {
    const forms = part.map((name) => normalizedName(snapshot, name));
    const found = await store.hmget(denylistKey(base, snapshot.index), ...forms);
    for (const [at, name] of part.entries()) if (found[at] !== null) denied.add(name);
  }
  return denied;
}

/** The whole denylist as it is now, in parts. */
export async function* currentDenylist(store: RedisClient, base: string): AsyncGenerator<string[]> {
  const { index } = await readWriteSnapshot(store, base);
  const seen = new Set<string>();
  for await (const page of scanPairs(store, denylistKey(base, index))) {
    const fresh = page.filter(([form]) => !seen.has(form));
    for (const [form] of fresh) seen.add(form);
    yield fresh.map(([form, spelling]) => (spelling === '' ? form : spelling));
  }
}
