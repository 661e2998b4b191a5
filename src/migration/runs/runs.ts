import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { Entity } from '../records/records.ts';
import type { OnConflict } from '../sources/scope.ts';
import { MigrationError } from '../errors.ts';
import type { Tally } from '../context/outcomes.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

/** Where a migration keeps its state. */
export interface RunStore {
  readonly store: RedisClient;
  readonly prefix: string;
}

/** The keys of a migration's state are documented in src/migration/README.md. */
export function runKey(prefix: string, run: string): string {
  return `${prefix}migration:run:${run}`;
}

export function runsKey(prefix: string): string {
  return `${prefix}migration:runs`;
}

export function runOrganizationsKey(prefix: string, run: string): string {
  return `${runKey(prefix, run)}:organizations`;
}

/** The names of all runs, also of those that were killed before they had saved anything. */
export async function runNames({ store, prefix }: RunStore): Promise<string[]> {
  return (await store.smembers(runsKey(prefix))).sort();
}

export async function isRun({ store, prefix }: RunStore, run: string): Promise<boolean> {
  return (await store.sismember(runsKey(prefix), run)) === 1;
}

/** Throws a MigrationError, with the names that there are, if there is no such run. */
export async function requireRun(store: RunStore, run: string): Promise<void> {
  if (await isRun(store, run)) return;
  const names = await runNames(store);
  const instead =
    names.length === 0 ? ': no migration has been started yet' : ` (existing runs: ${names.join(', ')})`;
  throw new MigrationError(`there is no run ${run}${instead}`);
}

/** The organizations that a run has begun to load and not finished. */
export function unfinishedLoadsKey(prefix: string, run: string): string {
  return `${runKey(prefix, run)}:loading`;
}

/** The organizations that any run has begun to load and not finished. */
export async function organizationsBeingLoaded(store: RedisClient, prefix: string): Promise<string[]> {
  const runs = await runNames({ store, prefix });
  const unfinished = await Promise.all(
    runs.map(async (run) => await store.smembers(unfinishedLoadsKey(prefix, run))),
  );
  return unfinished.flat();
}

/** The organizations that a run has migrated records of. A later round may find that some of their records are gone. */
export async function runOrganizations({ store, prefix }: RunStore, run: string): Promise<string[]> {
  return await store.smembers(runOrganizationsKey(prefix, run));
}

/** The state of a run's latest round. Times in ms. */
export interface RoundState {
  /** The source, without passwords. */
  source: string;
  /** Identifies a source with its mapping. */
  fingerprint: string;
  /** Which part of the source was selected. */
  selection: string;
  onConflict: OnConflict;
  startedAt: number;
  finishedAt?: number | undefined;
  /** Records refused by this round, for reasons the operator has accepted. */
  refused: number;
  /** When the last finished full round began. */
  fullAt?: number | undefined;
  /** updatedAt up to which an earlier round has seen everything. */
  highWater?: number | undefined;
  /** This round reads profiles changed since then. */
  since?: number | undefined;
  /** How often a verify or an apply has asked for a round that reads everything; stored apart from the rest. */
  readAll: number;
  /** The value of `readAll` when the last finished full round began. */
  settled: number;
  /** How far new organizations are loaded: rows of the source. */
  loaded?: ({ rows: number } & LoadBasis) | undefined;
  /** How far each entity has been migrated; `progress` is the share that is done, from 0 to 1. */
  entities: Partial<Record<Entity, { read: number; tally: Tally; progress: number }>>;
}

/** What has to be the same for a load to be resumed. */
export interface LoadBasis {
  /** That of the source that was read, and of how it is loaded. */
  version: string;
  /** As replicationIdsOf: other servers may lack what was loaded last. */
  servers: string;
  /** That of the filter which finds repeated records (createSeen): with another one, other records may be set aside. */
  seed: number;
}

/** The run that a source at this place has unless --run names one. */
export function defaultRunName(place: string): string {
  const word = basename(place).replaceAll(/[^A-Za-z0-9_-]/g, '') || 'source';
  return `${word.slice(0, 24)}-${createHash('sha256').update(place).digest('hex').slice(0, 8)}`;
}

export async function readRun({ store, prefix }: RunStore, run: string): Promise<RoundState | undefined> {
  const { state, readAll = '0' } = await store.hgetall(runKey(prefix, run));
  return state === undefined ? undefined : { ...(JSON.parse(state) as RoundState), readAll: Number(readAll) };
}

/** Makes the next round of a run read everything: what was found may come from a change older than the last round. */
export async function requestFullRound(runStore: RunStore, run: string): Promise<void> {
  const { store, prefix } = runStore;
  // Also while its first round is still reading, and has saved nothing.
  if (await isRun(runStore, run)) await store.hincrby(runKey(prefix, run), 'readAll', 1);
}
