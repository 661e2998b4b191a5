import { randomUUID } from 'node:crypto';
import { repeat } from '../../lib/repeat.ts';
import { hasEnded, thisProcess, type ProcessIdentity } from '../../lib/system/process-identity.ts';
import type { MigrationContext } from '../engine/context.ts';
import { MigrationError } from '../engine/issues.ts';
import { runKey, runsKey, type RunStore } from './runs.ts';
import { migrateLock, migrateState, migrateToken } from '../engine/scripts.ts';

function lockKey(prefix: string, run: string): string {
  return `${prefix}migration:lock:${run}`;
}

interface Owner extends ProcessIdentity {
  id: string;
}

export interface RunLock {
  readonly run: string;
  /** What claims the run and organizations, and what the scripts write under (lua/migration/run/claim.lua). */
  readonly claim: string;
  /** Aborted when the lock is lost, with a MigrationError. */
  readonly lost: AbortSignal;
  /** Changes fields of the run's state; those that are undefined are removed. Rejects once another process has the run. */
  save: (fields: Readonly<Record<string, string | undefined>>) => Promise<void>;
  /** Removes the run's state. Rejects once another process has the run. */
  forget: () => Promise<void>;
  /** Rejects once another process has the run. */
  check: () => Promise<void>;
  release: () => Promise<void>;
}

type LockContext = RunStore & Pick<MigrationContext, 'epoch'>;

const lease = 15_000;

/**
 * Prevents a second apply of a run. A lock is taken over immediately if its process is known to have ended, and
 * otherwise after its lease.
 */
export async function lockRun({ store, prefix, epoch }: LockContext, run: string): Promise<RunLock> {
  const key = lockKey(prefix, run);
  const own = JSON.stringify({ id: randomUUID(), ...thisProcess() } satisfies Owner);
  let token = 0;
  for (let held = ''; ;) {
    // Before the lock: whoever has that later than this process has a higher one.
    token = await migrateToken(store, `${prefix}migration:token`);
    const [outcome, found = ''] = await migrateLock(store, key, held, own, lease);
    if (outcome === 'done') break;
    const other = found === '' ? undefined : (JSON.parse(found) as Owner);
    if (other !== undefined && !hasEnded(other)) {
      throw new MigrationError(
        `run ${run} is being applied by process ${other.pid} on ${other.host}: wait until it ends, or stop it; if it has died on another machine or in another container, try again in ${lease / 1000} s`,
      );
    }
    held = found;
  }
  // From now on status shows the run, although the first reading may take long.
  await store.sadd(runsKey(prefix), run);
  const lost = new AbortController();
  const stopRenewing = repeat(async () => {
    try {
      const [renewed] = await migrateLock(store, key, own, own, lease);
      if (renewed === 'held') lost.abort(lockLost(run));
    } catch {
      // An unavailable store is reported by the writes in progress.
    }
  }, lease / 4);
  const claim = `${run}\n${epoch}\n${token}`;
  const change = async (action: 'save' | 'forget', fields: object): Promise<void> => {
    const json = JSON.stringify(fields, (_, value: unknown) => value ?? null);
    await migrateState(store, runKey(prefix, run), claim, action, json);
  };
  return {
    run,
    claim,
    lost: lost.signal,
    save: async (fields) => await change('save', fields),
    forget: async () => await change('forget', {}),
    check: async () => await change('save', {}),
    release: async () => {
      await stopRenewing();
      await migrateLock(store, key, own, '', lease);
    },
  };
}

/**
 * Works under the lock of a run. Rejects with a MigrationError if the lock is lost, or if Redis refuses a call because
 * another process has taken it over.
 */
export async function whileLocked<Result>(
  context: LockContext,
  run: string,
  work: (lock: RunLock) => Promise<Result>,
): Promise<Result> {
  const lock = await lockRun(context, run);
  try {
    await migrateState(context.store, runKey(context.prefix, run), lock.claim, 'claim', '{}');
    const result = await work(lock);
    lock.lost.throwIfAborted();
    return result;
  } catch (error) {
    throw /\bTAKENOVER /.test(String(error)) ? lockLost(run) : error;
  } finally {
    await lock.release().catch(() => {});
  }
}

function lockLost(run: string): MigrationError {
  return new MigrationError(
    `another process has taken over run ${run} while this one was paused, or a failover of Redis has lost the claim of this one: see profile-bridge migrate status, then run the same command again if needed`,
  );
}

/** The process that is applying the run now, if any. */
export async function whoApplies(
  { store, prefix }: RunStore,
  run: string,
): Promise<{ pid: number; host: string } | undefined> {
  const held = await store.get(lockKey(prefix, run));
  const owner = held === null ? undefined : (JSON.parse(held) as Owner);
  return owner === undefined || hasEnded(owner) ? undefined : { pid: owner.pid, host: owner.host };
}
