import { readFileSync } from 'node:fs';
import type { Cluster, Redis } from 'ioredis';

type Text = string | null;

/** The reply of lib/credentials.lua: id, role, user, client. */
export type KeyReply = [id: string, role: string, user: Text, client: Text];

/** The reply of lib/profiles.lua. */
export type ProfileReply = [
  username: Text,
  pictureFile: Text,
  pictureReference: Text,
  pictureUrl: Text,
  avatarReference: Text,
  avatarUrl: Text,
  wallet: Text,
  pictureCatalogueUrl: Text,
  avatarCatalogueUrl: Text,
  template: Text,
];

export type SettingsReply = [
  comparison: Text,
  min: Text,
  max: Text,
  pattern: Text,
  template: Text,
  ownership: Text,
  index: Text,
];

/** The caller's forms are of another generation of the name index, or that index is being rebuilt. */
type Fenced = ['stale'] | ['frozen'];

type ObjectField = 'picture' | 'avatar';

/** What each script takes after the organization's base, and what it replies; the .lua files say what it means. */
interface ScriptReplies {
  readProfile: (
    sha256: string,
  ) => ['unknown'] | ['no-user' | 'none', KeyReply] | ['profile', KeyReply, ProfileReply];
  authenticate: (sha256: string) => ['unknown'] | ['known', KeyReply, SettingsReply, Text];
  putProfile: (
    ...arguments_: string[]
  ) =>
    | Fenced
    | ['put', Text, ProfileReply]
    | ['staged' | 'denied' | 'taken' | 'lapsed']
    | ['object-not-found' | 'object-not-in-collection', ObjectField];
  banUsernames: (
    ...arguments_: string[]
  ) => Fenced | ['banned', ('added' | 'skipped' | 'replacement-in-use' | 'replacement-denied')[]];
  removeDenied: (...arguments_: string[]) => Fenced | ['removed', ('deleted' | 'in-use' | 'absent')[]];
  stageOpen: (token: string, leaseMs: number) => 'opened' | 'busy';
  stageAdd: (...arguments_: (string | number)[]) => Fenced | ['lapsed'] | ['staged', number[]];
  stageCommit: (token: string, index: string, keyId: string) => 'committed' | 'lapsed' | 'stale' | 'frozen';
  stageDrop: (token: string) => 'dropped' | 'lapsed';
  createKey: (...arguments_: string[]) => 'created' | 'unknown-organization' | 'exists';
  revokeKey: (keyId: string) => 'revoked' | 'already' | 'unknown';
  saveSettings: (...arguments_: (string | number)[]) => 'created' | 'changed';
  setObject: (reference: string, url: string) => 'set' | 'unknown-organization';
  addToCollection: (user: string, reference: string) => 'added' | 'present' | 'unknown-organization';
  setWallet: (user: string, address: string, field: 'w' | 'wu') => 'set' | 'unknown-organization';
  reindexOpen: (
    token: string,
    leaseMs: number,
    comparison: string,
  ) => ['unknown-organization'] | ['unchanged'] | ['busy'] | ['opened', generation: string, next: string];
  reindexNames: (
    ...arguments_: (string | number)[]
  ) => ['lapsed'] | ['added', count: number, collisions: [position: number, holder: string][]];
  reindexDenied: (...arguments_: (string | number)[]) => ['lapsed'] | ['added', count: number];
  reindexCommit: (token: string, leaseMs: number, next: string, comparison: string) => 'lapsed' | 'committed';
  reindexClose: (token: string, leaseMs: number) => 'lapsed' | 'closed';
}

/** The script commands, by the name ioredis knows them under. Every one takes the organization's base first. */
export type ScriptCommands = {
  [Name in keyof ScriptReplies]: (
    base: string,
    ...rest: Parameters<ScriptReplies[Name]>
  ) => Promise<ReturnType<ScriptReplies[Name]>>;
};

/** A Redis (or cluster) client that knows the scripts. */
export type Store = (Redis | Cluster) & ScriptCommands;

/** Each script: its file, the parts of lib/ that it uses, and whether it writes. */
const scripts: Record<keyof ScriptReplies, { file: string; uses: string[]; readOnly?: true }> = {
  readProfile: { file: 'read_profile', uses: ['credentials', 'profiles'], readOnly: true },
  authenticate: { file: 'authenticate', uses: ['credentials'], readOnly: true },
  putProfile: { file: 'put_profile', uses: ['clock', 'names', 'profiles'] },
  banUsernames: { file: 'ban_usernames', uses: ['clock', 'names', 'audit'] },
  removeDenied: { file: 'remove_denied', uses: ['names', 'audit'] },
  stageOpen: { file: 'stage_open', uses: [] },
  stageAdd: { file: 'stage_add', uses: ['names'] },
  stageCommit: { file: 'stage_commit', uses: ['names', 'audit'] },
  stageDrop: { file: 'stage_drop', uses: [] },
  createKey: { file: 'create_key', uses: ['clock', 'audit'] },
  revokeKey: { file: 'revoke_key', uses: ['clock', 'audit'] },
  saveSettings: { file: 'save_settings', uses: ['audit'] },
  setObject: { file: 'set_object', uses: [] },
  addToCollection: { file: 'add_to_collection', uses: [] },
  setWallet: { file: 'set_wallet', uses: ['clock', 'audit'] },
  reindexOpen: { file: 'reindex/open', uses: ['clock', 'freeze'] },
  reindexNames: { file: 'reindex/names', uses: ['clock', 'names', 'freeze'] },
  reindexDenied: { file: 'reindex/denied', uses: ['clock', 'freeze'] },
  reindexCommit: { file: 'reindex/commit', uses: ['clock', 'audit', 'freeze'] },
  reindexClose: { file: 'reindex/close', uses: [] },
};

/**
 * Teaches a client the scripts. The `#!lua` line makes the server refuse a key outside the organization's slot,
 * writes on a full store, and writes by a script that says it only reads.
 */
export function defineScripts(client: Redis | Cluster): Store {
  for (const [name, { file, uses, readOnly }] of Object.entries(scripts)) {
    const parts = [...uses.map((part) => `lib/${part}`), file].map(source);
    client.defineCommand(name, {
      numberOfKeys: 1,
      lua: [readOnly ? '#!lua flags=no-writes' : '#!lua', ...parts].join('\n'),
      readOnly: readOnly ?? false,
    });
  }
  return client as Store;
}

function source(file: string): string {
  return readFileSync(new URL(`lua/${file}.lua`, import.meta.url), 'utf8');
}
