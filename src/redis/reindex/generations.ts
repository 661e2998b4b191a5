import { settingsKey } from '../keys.ts';
import type { RedisClient } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';

const drop = script<[generation: string, buckets: number], 'in-use' | 'more' | 'dropped'>('reindex/drop');

/** The generation that a key of the name index or the denylist belongs to; undefined for any other key. */
export function generationOf(base: string, key: string): string | undefined {
  return /^(?:n(\d+):\d+|d(\d+))$/.exec(key.slice(base.length))?.slice(1).find(Boolean);
}

/**
 * Removes a generation of the name index and the denylist, which Redis frees in the background. One that is in force
 * or being built at that moment is kept, and the result is false.
 * `buckets`: how many it is known to have, where the settings may say less.
 */
export async function dropGeneration(
  store: RedisClient,
  base: string,
  generation: string,
  buckets = 0,
): Promise<boolean> {
  for (;;) {
    const outcome = await drop(store, base, generation, buckets);
    if (outcome !== 'more') return outcome === 'dropped';
    buckets = 0;
  }
}

/** Removes every generation that is neither in force nor being built: the one before, and those of killed rebuilds. */
export async function dropLeftovers(store: RedisClient, base: string): Promise<void> {
  for (const field of await store.hkeys(settingsKey(base))) {
    const generation = /^n(\d+)$/.exec(field)?.[1];
    if (generation !== undefined) await dropGeneration(store, base, generation);
  }
}
