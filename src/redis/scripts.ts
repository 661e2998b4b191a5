import { readFileSync } from 'node:fs';
import type { Cluster, Redis } from 'ioredis';
import { defineScript } from './define-script.ts';

type Text = string | null;
/** In a reply that travels as JSON, what is absent is false. */
export type JsonText = string | false;

/** The reply of lib/credentials.lua: id, role, user, client. */
export type KeyReply = [id: string, role: string, user: JsonText, client: JsonText];

/** The reply of lib/profiles.lua. */
export type ProfileReply = [
  username: JsonText,
  pictureFile: JsonText,
  pictureReference: JsonText,
  pictureUrl: JsonText,
  avatarReference: JsonText,
  avatarUrl: JsonText,
  wallet: JsonText,
  pictureCatalogueUrl: JsonText,
  avatarCatalogueUrl: JsonText,
  template: JsonText,
];

export type SettingsReply = [
  comparison: JsonText,
  min: JsonText,
  max: JsonText,
  pattern: JsonText,
  template: JsonText,
  ownership: JsonText,
  index: JsonText,
];

/** The caller's forms are of another generation of the name index, or that index is being rebuilt. */
type Fenced = ['stale'] | ['frozen'];

type ObjectField = 'picture' | 'avatar';

/** The reply of lua/fsck/look_profiles.lua, for each user. */
export type LookedProfile =
  | ['none']
  | ['wrong-type']
  | [
      'profile',
      username: Text,
      t: Text,
      pictureFile: Text,
      pictureReference: Text,
      avatarReference: Text,
      loose: Text,
    ];

/** `changed`: what was to be mended is no more. */
type Mended = 'mended' | 'changed';
type Unmendable = 'stale' | 'frozen';

/** What each script takes after the organization's base, and what it replies; the .lua files say what it means. */
interface ScriptReplies {
  readProfile: (
    sha256: string,
  ) => ['unknown'] | ['no-user' | 'none', KeyReply] | ['profile', KeyReply, ProfileReply];
  authenticate: (sha256: string) => ['unknown'] | ['known', KeyReply, SettingsReply, JsonText];
  putProfile: (
    ...rest: string[]
  ) =>
    | Fenced
    | ['put', JsonText, ProfileReply]
    | ['staged' | 'denied' | 'taken' | 'lapsed']
    | ['object-not-found' | 'object-not-in-collection', ObjectField];
  banUsernames: (
    ...rest: string[]
  ) => Fenced | ['banned', ('added' | 'skipped' | 'replacement-in-use' | 'replacement-denied')[]];
  removeDenied: (...rest: string[]) => Fenced | ['removed', ('deleted' | 'in-use' | 'absent')[]];
  stageOpen: (token: string, leaseMs: number) => 'opened' | 'busy';
  stageAdd: (...rest: (string | number)[]) => Fenced | ['lapsed'] | ['staged', number[]];
  stageCommit: (token: string, index: string, keyId: string) => 'committed' | 'lapsed' | 'stale' | 'frozen';
  stageDrop: (token: string) => 'dropped' | 'lapsed';
  createKey: (...rest: string[]) => 'created' | 'unknown-organization' | 'exists';
  revokeKey: (keyId: string) => 'revoked' | 'already' | 'unknown';
  saveSettings: (...rest: (string | number)[]) => 'created' | 'changed';
  setObject: (reference: string, url: string) => 'set' | 'unknown-organization';
  addToCollection: (user: string, reference: string) => 'added' | 'present' | 'unknown-organization';
  setWallet: (user: string, address: string, field: 'w' | 'wu') => 'set' | 'unknown-organization';
  reindexOpen: (
    token: string,
    leaseMs: number,
    comparison: string,
  ) => ['unknown-organization'] | ['unchanged'] | ['busy'] | ['opened', generation: string, next: string];
  reindexNames: (
    ...rest: (string | number)[]
  ) => ['lapsed'] | ['added', count: number, collisions: [position: number, holder: string][]];
  reindexDenied: (...rest: (string | number)[]) => ['lapsed'] | ['added', count: number];
  reindexCommit: (token: string, leaseMs: number, next: string, comparison: string) => 'lapsed' | 'committed';
  reindexClose: (token: string, leaseMs: number) => 'lapsed' | 'closed';
  fsckLookProfiles: (...users: string[]) => LookedProfile[];
  fsckLookNames: (
    ...arguments_: string[]
  ) => ['stale'] | ['seen', (['changed' | 'indexed' | 'free'] | ['held', holder: string, username: Text])[]];
  fsckLookHolders: (
    ...arguments_: string[]
  ) => ['stale'] | ['seen', (['changed'] | ['named' | 'misplaced', username: Text])[]];
  fsckClaimName: (...arguments_: string[]) => Mended | Unmendable | 'staged';
  fsckDropEntry: (...arguments_: string[]) => Mended | Unmendable;
  fsckRedeny: (...arguments_: string[]) => Mended | Unmendable;
  fsckDrop: (type: 'hash' | 'set', rest: string, field: string, value: string) => Mended;
  fsckDropMisfit: (rest: string, type: string) => Mended;
  fsckMendProfile: (user: string) => Mended;
  fsckLinkKey: (sha256: string) => Mended | 'shared';
}

/** The script commands, by the name ioredis knows them under. Every one takes the organization's base first. */
type ScriptCommands = {
  [Name in keyof ScriptReplies]: (
    base: string,
    ...rest: Parameters<ScriptReplies[Name]>
  ) => Promise<ReturnType<ScriptReplies[Name]>>;
};

/** A Redis (or cluster) client that knows the scripts. */
export type Store = (Redis | Cluster) & ScriptCommands;

interface ScriptSource {
  file: string;
  /** Parts of lib/. */
  uses: string[];
  readOnly?: true;
  /** Its reply travels as one JSON text, which clients read in a third of the time that many parts take them. */
  json?: true;
}

const scripts: Record<keyof ScriptReplies, ScriptSource> = {
  readProfile: { file: 'read_profile', uses: ['credentials', 'profiles'], readOnly: true, json: true },
  authenticate: { file: 'authenticate', uses: ['credentials'], readOnly: true, json: true },
  putProfile: { file: 'put_profile', uses: ['clock', 'names', 'profiles'], json: true },
  banUsernames: { file: 'ban_usernames', uses: ['clock', 'names', 'local_writes', 'audit'] },
  removeDenied: { file: 'remove_denied', uses: ['names', 'local_writes', 'audit'] },
  stageOpen: { file: 'stage_open', uses: [] },
  stageAdd: { file: 'stage_add', uses: ['names'] },
  stageCommit: { file: 'stage_commit', uses: ['names', 'local_writes', 'audit'] },
  stageDrop: { file: 'stage_drop', uses: [] },
  createKey: { file: 'create_key', uses: ['clock'] },
  revokeKey: { file: 'revoke_key', uses: ['clock'] },
  saveSettings: { file: 'save_settings', uses: [] },
  setObject: { file: 'set_object', uses: ['local_writes'] },
  addToCollection: { file: 'add_to_collection', uses: ['local_writes'] },
  setWallet: { file: 'set_wallet', uses: ['clock'] },
  reindexOpen: { file: 'reindex/open', uses: ['clock', 'names', 'freeze'] },
  reindexNames: { file: 'reindex/names', uses: ['clock', 'names', 'freeze'] },
  reindexDenied: { file: 'reindex/denied', uses: ['clock', 'freeze'] },
  reindexCommit: { file: 'reindex/commit', uses: ['clock', 'freeze'] },
  reindexClose: { file: 'reindex/close', uses: [] },
  fsckLookProfiles: { file: 'fsck/look_profiles', uses: ['names', 'names_safely'], readOnly: true },
  fsckLookNames: { file: 'fsck/look_names', uses: ['names', 'names_safely'], readOnly: true },
  fsckLookHolders: { file: 'fsck/look_holders', uses: ['names', 'names_safely'], readOnly: true },
  fsckClaimName: { file: 'fsck/claim_name', uses: ['clock', 'names', 'names_safely', 'audit'] },
  fsckDropEntry: { file: 'fsck/drop_entry', uses: ['names', 'names_safely'] },
  fsckRedeny: { file: 'fsck/redeny', uses: ['names'] },
  fsckDrop: { file: 'fsck/drop', uses: ['audit'] },
  fsckDropMisfit: { file: 'fsck/drop_misfit', uses: [] },
  fsckMendProfile: { file: 'fsck/mend_profile', uses: ['clock', 'names', 'names_safely'] },
  fsckLinkKey: { file: 'fsck/link_key', uses: [] },
};

/**
 * Teaches a client the scripts. The `#!lua` line makes the server refuse a key outside the organization's slot,
 * writes on a full store, and writes by a script that says it only reads.
 */
export function defineScripts(client: Redis | Cluster): Store {
  for (const [name, { file, uses, readOnly = false, json = false }] of Object.entries(scripts)) {
    const parts = uses.map((part) => source(`lib/${part}`));
    const body = json
      ? ['local function reply()', source(file), 'end', 'return cjson.encode(reply())']
      : [source(file)];
    const lua = [readOnly ? '#!lua flags=no-writes' : '#!lua', ...parts, ...body].join('\n');
    defineScript(client, name, { lua, readOnly, json });
  }
  return client as Store;
}

function source(file: string): string {
  return readFileSync(new URL(`lua/${file}.lua`, import.meta.url), 'utf8');
}
