import { randomUUID } from 'node:crypto';
import { repeat } from '../../lib/repeat.ts';
import { hasEnded, thisProcess, type ProcessIdentity } from '../../lib/system/process-identity.ts';
import type { MigrationContext } from '../context/context.ts';
import { MigrationError } from '../errors.ts';
import { compareAndSwap } from '../../redis/compare-and-swap.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { isRun, runKey, runsKey, type RunStore, type RoundState } from './runs.ts';

type Action = 'claim' | 'check' | 'save' | 'forget';

const changeRun = script<[claim: string, action: Action, state: string], 'done'>('migration/run/state');
const drawToken = script<[], number>('migration/run/draw_token');

function lockKey(prefix: string, run: string): string {
  return `${prefix}migration:lock:${run}`;
}

/** What a process works with while it has a run to itself. The signal is also aborted when the lock is lost. */
export interface LockedContext extends MigrationContext {
  /** The run. The calls reject, and change nothing, once another process has it. */
  readonly lock: {
    readonly run: string;
    save: (state: RoundState) => Promise<void>;
    /** Removes the run. */
    forget: () => Promise<void>;
    check: () => Promise<void>;
  };
}

const lease = 15_000;

/** Locks that this process may still have in Redis: it was unreachable when they were taken or to be released. */
const leftBehind = new Set<string>();

/**
 * Works under the lock of a run, which prevents a second apply. Rejects with a MigrationError if the lock is held or
 * lost, or if Redis refuses a call because another process has taken the run over.
 */
export async function whileLocked<Result>(
  context: MigrationContext,
  run: string,
  work: (context: LockedContext) => Promise<Result>,
): Promise<Result> {
  const { store, prefix, epoch } = context;
  const key = lockKey(prefix, run);
  const own = JSON.stringify({ id: randomUUID(), ...thisProcess() });
  const token = await takeLock(context, run, own);
  const lost = new AbortController();
  const stopRenewing = repeat(async () => {
    try {
      if ((await compareAndSwap(store, key, own, own, lease)) !== own) lost.abort(lockLost(run));
    } catch {
      // An unavailable store is reported by the writes in progress.
    }
  }, lease / 4);
  // For the scripts that write (lua/migration/run/claim.lua).
  const claim = `${run}\n${epoch}\n${token}`;
  const change = async (action: Action, state = ''): Promise<void> => {
    await changeRun(store, runKey(prefix, run), claim, action, state);
  };
  try {
    await change('claim');
    // From now on status shows the run, although the first reading may take long. Where Redis is full, it would refuse
    // even a name that the set has, and the run could not be rolled back.
    if (!(await isRun(context, run))) await store.sadd(runsKey(prefix), run);
    const lock = {
      run,
      save: async (state: RoundState) => await change('save', JSON.stringify(state)),
      forget: async () => {
        await change('forget');
        await store.srem(runsKey(prefix), run);
        // Another process may have begun it again before that.
        if ((await store.exists(runKey(prefix, run))) === 1) await store.sadd(runsKey(prefix), run);
      },
      check: async () => await change('check'),
    };
    const signal = AbortSignal.any([context.signal, lost.signal]);
    const result = await work({ ...context, claim, signal, lock });
    lost.signal.throwIfAborted();
    return result;
  } catch (error) {
    throw /\bTAKENOVER /.test(String(error)) ? lockLost(run) : error;
  } finally {
    await stopRenewing();
    await compareAndSwap(store, key, own, '', 0).catch(() => leftBehind.add(own));
  }
}

/**
 * Takes the lock of a run, immediately if the process that holds it is known to have ended, and otherwise after its
 * lease. Returns the token of this apply.
 */
async function takeLock({ store, prefix }: RunStore, run: string, own: string): Promise<number> {
  for (let held = ''; ;) {
    // Drawn before the lock is taken, so that a later holder of it has a higher one.
    const token = await drawToken(store, `${prefix}migration:token`);
    const found = await compareAndSwap(store, lockKey(prefix, run), held, own, lease).catch((error) => {
      // Only the reply may have been lost.
      leftBehind.add(own);
      throw error;
    });
    if (found === held) return token;
    const other = found === '' ? undefined : (JSON.parse(found) as ProcessIdentity);
    if (other !== undefined && !leftBehind.has(found) && !hasEnded(other)) {
      throw new MigrationError(
        `run ${run} is being applied by process ${other.pid} on ${other.host}: wait until it ends, or stop it; if it has died on another machine or in another container, try again in ${lease / 1000} s`,
      );
    }
    held = found;
  }
}

function lockLost(run: string): MigrationError {
  return new MigrationError(
    `another process has taken over run ${run} while this one was paused, or a failover of Redis has lost the claim of this one: see profile-bridge migrate status, then run the same command again if needed`,
  );
}

/** The process that is applying the run now, if any. */
export async function lockOwner(
  { store, prefix }: RunStore,
  run: string,
): Promise<{ pid: number; host: string } | undefined> {
  const held = await store.get(lockKey(prefix, run));
  const owner = held === null ? undefined : (JSON.parse(held) as ProcessIdentity);
  return owner === undefined || hasEnded(owner) ? undefined : { pid: owner.pid, host: owner.host };
}
