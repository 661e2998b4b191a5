import { denylistKey, namesBucketKey } from '../keys.ts';
import type { Store } from '../scripts.ts';

/** Buckets of one generation of the name index: four hexadecimal digits (lua/lib/names.lua). */
const buckets = 0x10000;
const chunkSize = 128;

/** The generation that a key of the name index or the denylist belongs to; undefined for any other key. */
export function generationOf(base: string, key: string): string | undefined {
  return /^(?:n(\d+):[0-9a-f]{4}|d(\d+))$/.exec(key.slice(base.length))?.slice(1).find(Boolean);
}

/** Removes a generation of the name index and the denylist, which must not be in force. Redis frees it aside. */
export async function dropGeneration(store: Store, base: string, generation: string): Promise<void> {
  await store.unlink(denylistKey(base, generation));
  for (let first = 0; first < buckets; first += chunkSize) {
    const keys = Array.from({ length: chunkSize }, (_, offset) =>
      namesBucketKey(base, generation, (first + offset).toString(16).padStart(4, '0')),
    );
    await store.unlink(keys);
  }
}
