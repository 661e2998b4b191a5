import { totalOf } from '../../lib/numbers.ts';
import { scanKeys } from '../../redis/connection/scan.ts';
import { claimsKey, organizationBase } from '../../redis/keys.ts';
import { coverageKey } from '../../deprecation/ledger/keys.ts';
import type { MigrationContext } from '../context/context.ts';
import { MigrationError } from '../errors.ts';
import { rollBack } from './load/unfinished.ts';
import { whileLocked } from '../runs/lock.ts';
import { runOrganizations, runOrganizationsKey } from '../runs/runs.ts';

/**
 * Removes the state of a run from Redis, and rolls back organizations that it was loading when it was killed, but
 * removes no records of others. Refused while the run is applied. Returns the ids of what was rolled back.
 */
export async function forgetRun(context: MigrationContext, run: string): Promise<string[]> {
  return await whileLocked(context, run, async (locked) => {
    const { store, prefix, lock } = locked;
    const rolledBack = await rollBack(locked);
    for (const id of await runOrganizations(locked, run)) {
      await store.hdel(claimsKey(organizationBase(prefix, id)), run);
    }
    await store.unlink(runOrganizationsKey(prefix, run));
    // Last, so that the run is still there to be forgotten if this is killed.
    await lock.forget();
    return rolledBack;
  });
}

/** Counts the keys of a prefix. Throws if a service uses or has used them, also under a longer prefix. */
export async function countRehearsal({ store, prefix, signal }: MigrationContext): Promise<number> {
  const usedBy = coverageKey('', '');
  let used: string | undefined;
  let count = 0;
  for await (const keys of scanKeys(store, prefix)) {
    signal.throwIfAborted();
    count += keys.length;
    used ??= keys.find((key) => key.includes(usedBy));
  }
  if (used === undefined) return count;
  throw new MigrationError(
    `a service uses or has used keys that begin with ${prefix} (such as ${used}), so they are not only those of a rehearsal: check KEY_PREFIX`,
  );
}

/** Removes every key of a prefix, and returns their number. */
export async function removeRehearsal({ store, prefix, signal }: MigrationContext): Promise<number> {
  let count = 0;
  for await (const keys of scanKeys(store, prefix)) {
    signal.throwIfAborted();
    const removed = await Promise.all(keys.map(async (key) => await store.unlink(key)));
    count += totalOf(removed);
  }
  return count;
}
