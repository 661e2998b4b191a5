import { settingsKey } from '../keys.ts';
import type { RedisClient } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';

const drop = script<[generation: string], 'in-use' | 'more' | 'dropped'>('reindex/drop');

/** The existing generations of the name index, including the one in force. */
export async function listGenerations(store: RedisClient, base: string): Promise<string[]> {
  const fields = await store.hkeys(settingsKey(base));
  return fields.flatMap((field) => /^n(\d+)$/.exec(field)?.[1] ?? []);
}

/** Removes a generation of the name index and the denylist; false if it is in force or being built, and kept. */
export async function dropGeneration(store: RedisClient, base: string, generation: string): Promise<boolean> {
  for (;;) {
    const outcome = await drop(store, base, generation);
    if (outcome !== 'more') return outcome === 'dropped';
  }
}

/** Removes every generation that is neither in force nor being built. */
export async function dropLeftovers(store: RedisClient, base: string): Promise<void> {
  for (const generation of await listGenerations(store, base)) await dropGeneration(store, base, generation);
}
