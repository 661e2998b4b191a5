import { loadScripts, type ScriptCommand, type ScriptFiles } from '../../redis/connection/script-loader.ts';
import type { Store } from '../../redis/scripts.ts';
import type { Outcome } from '../analysis/outcomes.ts';
import type { Refusal } from '../../redis/write-snapshot.ts';

export type Mode = 'write' | 'dry';

/** The migration's scripts (src/redis/lua/migration); the .lua files say what each takes and returns. */
interface MigrationScripts {
  migrateProfiles: ScriptCommand<
    [
      index: string,
      mode: Mode,
      rows: string,
      namesToCome: number,
      trust: 'trust-source' | '',
      snapshotAt?: number | '',
    ],
    [Refusal] | ['applied', outcomes: (Outcome | 'renamed' | 'staged')[], names: string[], denied: number[]]
  >;
  migrateDenylist: ScriptCommand<
    [mode: Mode, index: string, rows: string, snapshotAt?: number | ''],
    [Refusal] | ['applied', outcomes: Outcome[], used: number[]]
  >;
  migrateOrganization: ScriptCommand<[mode: Mode, ...settings: string[]], Outcome>;
  migrateKeys: ScriptCommand<[mode: Mode, rows: string], Outcome[]>;
  migrateObjects: ScriptCommand<[mode: Mode, rows: string], Outcome[]>;
  migrateCollections: ScriptCommand<[mode: Mode, rows: string], Outcome[]>;
  migrateRename: ScriptCommand<
    [index: string, kind: 'chain' | 'cycle', rows: string],
    [Refusal] | ['renamed', outcomes: ('renamed' | 'done' | 'changed' | 'taken')[]]
  >;
  migrateLoad: ScriptCommand<[run: string, kind: 'profiles' | 'names', rows: string], 'loaded' | 'lost'>;
  migrateFinishLoad: ScriptCommand<
    [run: string, buckets: number, ...settings: string[]],
    'finished' | 'lost'
  >;
  migratePrune: ScriptCommand<
    [entity: string, index: string, rows: string, snapshotAt: number | ''],
    [Refusal] | ['pruned', count: number]
  >;
  migrateRead: ScriptCommand<[index: string, rows: string], [fields: string[], holder: string | null][]>;
  migrateReadNames: ScriptCommand<
    [index: string, bucket: string],
    [count: number, others: [form: string, user: string, username: string | null][]]
  >;
  migratePicture: ScriptCommand<
    [user: string, url: string, file: string, pendingGraceMs: number],
    'put' | 'changed' | 'lapsed'
  >;
  /** Its key is the lock. */
  migrateLock: ScriptCommand<[expected: string, wanted: string, leaseMs: number], string>;
}

/** A store that also knows the migration's scripts. */
export type MigrationStore = Store & MigrationScripts;

const files: ScriptFiles<MigrationScripts> = {
  migrateProfiles: 'migration/apply_profiles',
  migrateDenylist: 'migration/apply_denylist',
  migrateOrganization: 'migration/apply_organization',
  migrateKeys: 'migration/apply_keys',
  migrateObjects: 'migration/apply_objects',
  migrateCollections: 'migration/apply_collections',
  migrateRename: 'migration/rename',
  migrateLoad: 'migration/run/load',
  migrateFinishLoad: 'migration/run/finish_load',
  migratePrune: 'migration/prune',
  migrateRead: 'migration/read_profiles',
  migrateReadNames: 'migration/read_names',
  migratePicture: 'migration/put_picture',
  migrateLock: 'migration/run/lock',
};

/** Teaches a store the migration's scripts, made of the same parts as the service's own. */
export function defineMigrationScripts(store: Store): MigrationStore {
  return loadScripts<Store, MigrationScripts>(store, files);
}
