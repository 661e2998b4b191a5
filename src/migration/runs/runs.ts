import { createHash } from 'node:crypto';
import { basename, resolve } from 'node:path';
import type { Entity } from '../records/records.ts';
import type { OnConflict } from '../sources/scope.ts';
import type { MigrationStore } from '../engine/scripts.ts';
import { isDatabaseUrl } from '../sources/databases/urls.ts';
import type { Tally } from '../analysis/outcomes.ts';

/** Keys of the migrations' own state; src/redis/README.md has them, too. */
export function runKey(prefix: string, run: string): string {
  return `${prefix}migration:run:${run}`;
}

export function runsKey(prefix: string): string {
  return `${prefix}migration:runs`;
}

export function runOrganizationsKey(prefix: string, run: string): string {
  return `${runKey(prefix, run)}:organizations`;
}

/** The organizations whose records a run has brought in: those in which it later may miss something. */
export async function runOrganizations(
  { store, prefix }: { store: MigrationStore; prefix: string },
  run: string,
): Promise<string[]> {
  return await store.smembers(runOrganizationsKey(prefix, run));
}

/** How far an entity has been brought in. */
interface EntityState {
  read: number;
  tally: Tally;
  /** The share that is done, from 0 to 1. */
  progress: number;
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
  /** When the last finished round that has read everything began. */
  fullAt?: number | undefined;
  /** updatedAt up to which an earlier round has seen everything. */
  highWater?: number | undefined;
  /** From when on this round looks at profiles. */
  since?: number | undefined;
  /** Whether the next round reads everything, since a verify has found differences. */
  readAll?: boolean | undefined;
  /** How far new organizations are loaded: rows of the source, in the version of it that was read. */
  loaded?: { rows: number; version: string } | undefined;
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
  const {
    source,
    fingerprint,
    selection,
    onConflict,
    startedAt,
    finishedAt,
    refused,
    fullAt,
    highWater,
    since,
  } = fields;
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
    ...(fullAt !== undefined && { fullAt: Number(fullAt) }),
    ...(highWater !== undefined && { highWater: Number(highWater) }),
    ...(since !== undefined && { since: Number(since) }),
    readAll: fields['readAll'] === '1',
    ...(fields['loaded'] !== undefined && {
      loaded: JSON.parse(fields['loaded']) as RunState['loaded'],
    }),
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
  const { entities, finishedAt, fullAt, highWater, since, readAll, loaded, ...fields } = state;
  const flat: Record<string, string | number> = { ...fields };
  if (fullAt !== undefined) flat['fullAt'] = fullAt;
  if (highWater !== undefined) flat['highWater'] = highWater;
  if (since !== undefined) flat['since'] = since;
  if (readAll === true) flat['readAll'] = 1;
  if (loaded !== undefined) flat['loaded'] = JSON.stringify(loaded);
  if (finishedAt !== undefined) flat['finishedAt'] = finishedAt;
  for (const [entity, own] of Object.entries(entities)) flat[`entity:${entity}`] = JSON.stringify(own);
  await store.multi().del(runKey(prefix, run)).hset(runKey(prefix, run), flat).exec();
}

/** Saves how far new organizations are loaded; undefined before what was loaded is removed. */
export async function saveLoaded(
  store: MigrationStore,
  prefix: string,
  run: string,
  loaded: RunState['loaded'],
): Promise<void> {
  if (loaded === undefined) await store.hdel(runKey(prefix, run), 'loaded');
  else await store.hset(runKey(prefix, run), 'loaded', JSON.stringify(loaded));
}

/** Has the next round of a run read everything: what a verify found to differ may be older than the last one. */
export async function readAllNext(store: MigrationStore, prefix: string, run: string): Promise<void> {
  if ((await store.exists(runKey(prefix, run))) === 1) await store.hset(runKey(prefix, run), 'readAll', 1);
}
