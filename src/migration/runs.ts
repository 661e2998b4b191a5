import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, resolve } from 'node:path';
import { MigrationError } from './issues.ts';
import type { Entity } from './records.ts';
import type { OnConflict } from './scope.ts';
import type { MigrationStore } from './scripts.ts';
import { isDatabaseUrl } from './sources/urls.ts';
import type { Tally } from './writer.ts';

/** Keys of the migrations' own state; src/redis/README.md has them, too. */
export function runKey(prefix: string, run: string): string {
  return `${prefix}migration:run:${run}`;
}

function lockKey(prefix: string, run: string): string {
  return `${prefix}migration:lock:${run}`;
}

export function runsKey(prefix: string): string {
  return `${prefix}migration:runs`;
}

/** How far an entity has been brought in. */
export interface EntityState {
  read: number;
  tally: Tally;
  /** The share that is done, from 0 to 1. */
  progress: number;
  isDone: boolean;
  /** Where to go on: everything before is in Redis. */
  cursor?: string;
}

/** A run's state, as kept in Redis. Times in ms. */
export interface RunState {
  /** The source, without passwords. */
  source: string;
  /** Tells one source and mapping from another. */
  fingerprint: string;
  /** What was chosen of the source. */
  selection: string;
  onConflict: OnConflict;
  startedAt: number;
  finishedAt?: number | undefined;
  /** Records refused by this round, for reasons the operator has accepted. */
  refused: number;
  /** updatedAt up to which an earlier round has seen everything. */
  highWater?: number | undefined;
  /** From when on this round looks at profiles. */
  since?: number | undefined;
  entities: Partial<Record<Entity, EntityState>>;
}

/** The run a source has unless --run names one. Any path or URL to one source gives the same. */
export function defaultRunName(source: string, shown: string): string {
  const whole = isDatabaseUrl(source) ? shown : resolve(source);
  const word = basename(whole).replaceAll(/[^A-Za-z0-9_-]/g, '') || 'source';
  return `${word.slice(0, 24)}-${createHash('sha256').update(whole).digest('hex').slice(0, 8)}`;
}

export async function readRun(
  store: MigrationStore,
  prefix: string,
  run: string,
): Promise<RunState | undefined> {
  const fields = await store.hgetall(runKey(prefix, run));
  const { source, fingerprint, selection, onConflict, startedAt, finishedAt, refused, highWater, since } =
    fields;
  if (source === undefined) return undefined;
  const entities: RunState['entities'] = {};
  for (const [field, value] of Object.entries(fields)) {
    if (field.startsWith('entity:')) entities[field.slice(7) as Entity] = JSON.parse(value) as EntityState;
  }
  return {
    source,
    fingerprint: fingerprint ?? '',
    selection: selection ?? '',
    onConflict: (onConflict ?? 'abort') as OnConflict,
    startedAt: Number(startedAt),
    ...(finishedAt !== undefined && { finishedAt: Number(finishedAt) }),
    refused: Number(refused ?? 0),
    ...(highWater !== undefined && { highWater: Number(highWater) }),
    ...(since !== undefined && { since: Number(since) }),
    entities,
  };
}

/** Saves a round as a whole: what an earlier one kept is replaced. */
export async function saveRound(
  store: MigrationStore,
  prefix: string,
  run: string,
  state: RunState,
): Promise<void> {
  const { entities, finishedAt, highWater, since, ...fields } = state;
  const flat: Record<string, string | number> = { ...fields };
  if (highWater !== undefined) flat['highWater'] = highWater;
  if (since !== undefined) flat['since'] = since;
  if (finishedAt !== undefined) flat['finishedAt'] = finishedAt;
  for (const [entity, own] of Object.entries(entities)) flat[`entity:${entity}`] = JSON.stringify(own);
  await store.multi().del(runKey(prefix, run)).hset(runKey(prefix, run), flat).exec();
}

/** Saves how far an entity is. What it says must be in Redis already. */
export async function saveEntity(
  store: MigrationStore,
  prefix: string,
  run: string,
  entity: Entity,
  state: EntityState,
): Promise<void> {
  await store.hset(runKey(prefix, run), `entity:${entity}`, JSON.stringify(state));
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
