import { readFileSync } from 'node:fs';
import { defineScript } from '../../redis/define-script.ts';
import type { Store } from '../../redis/scripts.ts';

type Fenced = ['stale'] | ['frozen'];
export type Mode = 'write' | 'dry';

/** What each script takes after the organization's base (lock: its key), and replies; the .lua files say the rest. */
interface ScriptReplies {
  migrateProfiles: (
    index: string,
    mode: Mode,
    rows: string,
    namesToCome: number,
  ) => Fenced | ['applied', outcomes: string, names: string[], denied: number[]];
  migrateDenylist: (
    mode: Mode,
    index: string,
    rows: string,
  ) => Fenced | ['applied', outcomes: string, used: number[]];
  migrateOrganization: (mode: Mode, ...settings: string[]) => 'c' | 'u' | '=' | 'k' | 'x';
  migrateKeys: (mode: Mode, rows: string) => string;
  migrateObjects: (mode: Mode, rows: string) => string;
  migrateCollections: (mode: Mode, rows: string) => string;
  migrateRelease: (index: string, rows: string) => Fenced | ['released', number];
  migratePrune: (entity: string, index: string, rows: string) => Fenced | ['pruned', outcomes: string];
  migrateRead: (index: string, rows: string) => [fields: string[], holder: string | null][];
  migratePicture: (user: string, url: string, file: string) => 'put' | 'changed' | 'lapsed';
  migrateLock: (expected: string, wanted: string, leaseMs: number) => string;
}

type Commands = {
  [Name in keyof ScriptReplies]: (
    base: string,
    ...rest: Parameters<ScriptReplies[Name]>
  ) => Promise<ReturnType<ScriptReplies[Name]>>;
};

/** A store that also knows the migration's scripts. */
export type MigrationStore = Store & Commands;

/** Each script: its file, and the parts of src/redis/lua/lib that it uses. */
const scripts: Record<keyof ScriptReplies, { file: string; uses: string[]; readOnly?: true }> = {
  migrateProfiles: { file: 'apply_profiles', uses: ['clock', 'names'] },
  migrateDenylist: { file: 'apply_denylist', uses: ['names', 'local_writes'] },
  migrateOrganization: { file: 'apply_organization', uses: [] },
  migrateKeys: { file: 'apply_keys', uses: ['clock'] },
  migrateObjects: { file: 'apply_objects', uses: ['local_writes'] },
  migrateCollections: { file: 'apply_collections', uses: [] },
  migrateRelease: { file: 'release_names', uses: ['names'] },
  migratePrune: { file: 'prune', uses: ['clock', 'names', 'local_writes'] },
  migrateRead: { file: 'read_profiles', uses: ['names'], readOnly: true },
  migratePicture: { file: 'put_picture', uses: ['clock'] },
  migrateLock: { file: 'lock', uses: [] },
};

/** Teaches a store the migration's scripts, made of the same parts as the service's own. */
export function defineMigrationScripts(store: Store): MigrationStore {
  for (const [name, { file, uses, readOnly }] of Object.entries(scripts)) {
    const parts = [...uses.map((part) => `lib/${part}`), `migration/${file}`].map(source);
    const lua = [readOnly ? '#!lua flags=no-writes' : '#!lua', ...parts].join('\n');
    // The lock is the one key outside every organization, and stands by itself.
    if (name === 'migrateLock') store.defineCommand(name, { numberOfKeys: 1, lua });
    else defineScript(store, name, { lua, readOnly: readOnly ?? false });
  }
  return store as MigrationStore;
}

function source(file: string): string {
  return readFileSync(new URL(`../../redis/lua/${file}.lua`, import.meta.url), 'utf8');
}
