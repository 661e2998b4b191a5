import { denylistKey, namesBucketKey, settingsKey } from '../keys.ts';
import type { RedisClient } from '../connection/client.ts';

const chunkSize = 128;

/** The generation that a key of the name index or the denylist belongs to; undefined for any other key. */
export function generationOf(base: string, key: string): string | undefined {
  return /^(?:n(\d+):\d+|d(\d+))$/.exec(key.slice(base.length))?.slice(1).find(Boolean);
}

/** Removes a generation of the name index and the denylist, which must not be in force. Redis frees it aside. */
export async function dropGeneration(store: RedisClient, base: string, generation: string): Promise<void> {
  await store.unlink(denylistKey(base, generation));
  const sizeField = `n${generation}`;
  const buckets = Number(await store.hget(settingsKey(base), sizeField)) || 1;
  for (let first = 0; first < buckets; first += chunkSize) {
    const length = Math.min(chunkSize, buckets - first);
    const keys = Array.from({ length }, (_, offset) =>
      namesBucketKey(base, generation, String(first + offset)),
    );
    await store.unlink(keys);
  }
  await store.hdel(settingsKey(base), sizeField);
}
