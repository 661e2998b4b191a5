import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { MigrationError } from '../engine/issues.ts';
import { runsKey } from './runs.ts';
import type { MigrationStore } from '../engine/scripts.ts';

function lockKey(prefix: string, run: string): string {
  return `${prefix}migration:lock:${run}`;
}

interface Owner {
  token: string;
  host: string;
  pid: number;
  /** When the process began, where the system tells: ids are used again. */
  born: string;
}

export interface RunLock {
  /** Aborted when the lock is lost, with a MigrationError. */
  readonly lost: AbortSignal;
  release: () => Promise<void>;
}

const lease = 15_000;

/**
 * Keeps a second apply off a run. A lock whose process has died is taken over at once where that can be seen, that
 * is on the same host, and anywhere after its lease.
 */
export async function lockRun(store: MigrationStore, prefix: string, run: string): Promise<RunLock> {
  const key = lockKey(prefix, run);
  const owner: Owner = { token: randomUUID(), host: hostname(), pid: process.pid, born: bornAt(process.pid) };
  const own = JSON.stringify(owner);
  for (let held = ''; ;) {
    const now = await store.migrateLock(key, held, own, lease);
    if (now === '') break;
    const other = now === '?' ? undefined : (JSON.parse(now) as Owner);
    if (other !== undefined && isAlive(other)) {
      throw new MigrationError(
        `run ${run} is being applied by process ${other.pid} on ${other.host}: wait for its end, or stop it; one that died elsewhere than here is given up after ${lease / 1000} s`,
      );
    }
    held = other === undefined ? '' : now;
  }
  // From now on status knows of it, though the first reading may take long.
  await store.sadd(runsKey(prefix), run);
  const lost = new AbortController();
  const renewOnce = async (): Promise<void> => {
    try {
      if ((await store.migrateLock(key, own, own, lease)) !== '') lost.abort(lockLost(run));
    } catch {
      // A store that is away is told by what is being written.
    }
  };
  const renew = setInterval(() => {
    void renewOnce();
  }, lease / 4).unref();
  return {
    lost: lost.signal,
    release: async () => {
      clearInterval(renew);
      await store.migrateLock(key, own, '', lease);
    },
  };
}

function lockLost(run: string): MigrationError {
  return new MigrationError(
    `run ${run} was taken over by another process, for this one was held up too long: see status, then run the same command again if need be`,
  );
}

/** Who is applying the run now; undefined where nobody is. */
export async function whoApplies(
  store: MigrationStore,
  prefix: string,
  run: string,
): Promise<{ pid: number; host: string } | undefined> {
  const held = await store.get(lockKey(prefix, run));
  const owner = held === null ? undefined : (JSON.parse(held) as Owner);
  return owner !== undefined && isAlive(owner) ? { pid: owner.pid, host: owner.host } : undefined;
}

function isAlive({ host, pid, born }: Owner): boolean {
  if (host !== hostname()) return true;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  return born === '' || bornAt(pid) === born;
}

/** The process's start in clock ticks since the system's, and whether it is more than a corpse; '' where unknown. */
function bornAt(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return fields[0] === 'Z' ? 'dead' : (fields[19] ?? '');
  } catch {
    return '';
  }
}
