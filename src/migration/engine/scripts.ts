import { script } from '../../redis/connection/script-loader.ts';
import type { Entity } from '../records/records.ts';
import type { Outcome } from '../analysis/outcomes.ts';
import type { GenerationRefusal } from '../../redis/changes.ts';

export type WriteMode = 'write' | 'dry';

/** What the scripts that write begin with (src/redis/lua/lib/change.lua); `index` is '' if no names matter. */
type Under = [epoch: number, index: string];

export const migrateProfiles = script<
  [
    ...under: Under,
    mode: WriteMode,
    rows: string,
    namesToCome: number,
    trust: 'trust-source' | '',
    snapshotAt: number | '',
    marksFrom: number,
  ],
  | [GenerationRefusal]
  | ['applied', outcomes: (Outcome | 'renamed' | 'staged')[], names: string[], denied: number[]]
>('migration/apply_profiles');

export const migrateDenylist = script<
  [...under: Under, mode: WriteMode, rows: string, snapshotAt: number | '', marksFrom: number],
  [GenerationRefusal] | ['applied', outcomes: Outcome[], used: number[]]
>('migration/apply_denylist');

/** The entities that involve no usernames, and so no more than a script that takes their rows. */
export type PlainEntity = Exclude<Entity, 'profiles' | 'denylist'>;

export const migrateRecords = script<
  [...under: Under, mode: WriteMode, entity: PlainEntity, rows: string],
  Outcome[]
>('migration/apply_records');

export const migrateRename = script<
  [...under: Under, kind: 'chain' | 'cycle', rows: string],
  [GenerationRefusal] | ['renamed', outcomes: ('renamed' | 'done' | 'changed' | 'taken')[]]
>('migration/rename');

export const migrateBeginLoad = script<
  [run: string, epoch: number, token: string],
  ['begun'] | ['held', run: string] | ['exists']
>('migration/run/begin_load');

export const migrateLoad = script<
  [loader: string, kind: 'profiles' | 'names', rows: string],
  'loaded' | 'lost'
>('migration/run/load');

export const migrateFinishLoad = script<
  [...under: Under, loader: string, buckets: number, ...settings: string[]],
  'finished' | 'lost'
>('migration/run/finish_load');

export const migratePrune = script<
  [
    ...under: Under,
    mode: WriteMode,
    entity: Entity,
    rows: string,
    snapshotAt: number | '',
    marksFrom: number,
  ],
  [GenerationRefusal] | ['pruned', outcomes: ('removed' | 'kept')[]]
>('migration/prune');

export const migrateRead = script<[index: string, rows: string], [fields: string[], holder: string | null][]>(
  'migration/read_profiles',
);

export const migrateReadNames = script<
  [index: string, bucket: string],
  [count: number, others: [form: string, user: string, username: string | null][]]
>('migration/read_names');

export const migratePicture = script<
  [...under: Under, user: string, url: string, file: string, pendingGraceMs: number],
  'put' | 'changed' | 'lapsed'
>('migration/put_picture');

/** Its key is the lock. */
export const migrateLock = script<[expected: string, wanted: string, leaseMs: number], string>(
  'migration/run/lock',
);
