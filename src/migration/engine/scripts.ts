import { script } from '../../redis/connection/script-loader.ts';
import type { MigrationContext } from '../context/context.ts';
import type { Entity } from '../records/records.ts';
import type { Outcome } from '../context/outcomes.ts';
import type { ChangeArguments, GenerationRefusal } from '../../redis/changes.ts';

/**
 * What the arguments of scripts that write begin with (src/redis/lua/lib/change.lua, claim.lua). `index` is '' if no
 * names matter, `claim` is `dry` for a call that only says what it would do.
 */
type WriteArguments = [...ChangeArguments, claim: string];

export const dry = '';

/** The context for calls that only say what they would do. */
export function dryRun(context: MigrationContext): MigrationContext {
  return { ...context, claim: dry };
}

/** What the arguments of scripts that take rows of the source begin with (src/redis/lua/lib/source.lua). */
export type RowArguments = [...WriteArguments, rows: string, snapshotAt: number | '', marksFrom: number];

export const migrateProfiles = script<
  [...RowArguments, namesToCome: number, trust: 'trust-source' | ''],
  | [GenerationRefusal]
  | [
      'applied',
      outcomes: (Outcome | 'renamed')[],
      names: [position: number, name: string][],
      denied: number[],
    ]
>('migration/apply_profiles');

export const migrateRecords = script<
  [...RowArguments, entity: Exclude<Entity, 'profiles'>],
  [GenerationRefusal] | ['applied', outcomes: Outcome[], used: number[]]
>('migration/apply_records');

export const migrateRename = script<[...RowArguments, kind: 'record' | 'make'], [GenerationRefusal | 'done']>(
  'migration/rename',
);

export const migrateClaim = script<
  [claim: string, what: 'claim' | 'load'],
  ['exists' | 'begun' | 'absent' | 'damaged'] | ['held', run: string]
>('migration/run/claim');

export const migrateLoad = script<
  [claim: string, kind: 'profiles' | 'names', rows: string],
  'loaded' | 'lost'
>('migration/run/load');

export const migrateRollBack = script<[claim: string, ...keys: string[]], 'removed' | 'lost'>(
  'migration/run/roll_back',
);

export const migrateFinishLoad = script<
  [...WriteArguments, buckets: number, ...settings: string[]],
  'finished' | 'lost'
>('migration/run/finish_load');

export const migratePrune = script<
  [...RowArguments, entity: Entity],
  [GenerationRefusal] | ['pruned', outcomes: ('removed' | 'kept')[]]
>('migration/prune');

export const migrateReadProfiles = script<
  [index: string, rows: string],
  [fields: string[], holder: string | null][]
>('migration/read_profiles');

export const migrateReadNames = script<
  [index: string, bucket: string],
  [normalizedName: string, user: string, username: string | null][]
>('migration/read_names');

export const migratePicture = script<
  [
    ...WriteArguments,
    user: string,
    url: string,
    adopted: string,
    fetchedFrom: number,
    file: string,
    pendingGraceMs: number,
  ],
  'put' | 'changed' | 'in-doubt' | 'lapsed'
>('migration/put_picture');
