import type { RedisClient } from '../connection/client.ts';
import type { ScriptCommand, ScriptFiles } from '../connection/script-loader.ts';
import type { Refusal } from '../write-snapshot.ts';

type Text = string | null;

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

export interface FsckScripts {
  fsckLookProfiles: ScriptCommand<string[], LookedProfile[]>;
  fsckLookNames: ScriptCommand<
    string[],
    ['stale'] | ['seen', (['changed' | 'indexed' | 'free'] | ['held', holder: string, username: Text])[]]
  >;
  fsckLookHolders: ScriptCommand<
    string[],
    ['stale'] | ['seen', (['changed'] | ['named' | 'misplaced', username: Text])[]]
  >;
  fsckClaimName: ScriptCommand<string[], Mended | Refusal | 'staged'>;
  fsckDropEntry: ScriptCommand<string[], Mended | Refusal>;
  fsckRedeny: ScriptCommand<string[], Mended | Refusal>;
  fsckDrop: ScriptCommand<[type: 'hash' | 'set', key: string, field: string, value: string], Mended>;
  fsckDropMisfit: ScriptCommand<[key: string, type: string], Mended>;
  fsckMendProfile: ScriptCommand<[user: string], Mended>;
  fsckLinkKey: ScriptCommand<[sha256: string], Mended | 'shared'>;
}

export type FsckStore = RedisClient & FsckScripts;

export const fsckScripts: ScriptFiles<FsckScripts> = {
  fsckLookProfiles: 'fsck/look_profiles',
  fsckLookNames: 'fsck/look_names',
  fsckLookHolders: 'fsck/look_holders',
  fsckClaimName: 'fsck/claim_name',
  fsckDropEntry: 'fsck/drop_entry',
  fsckRedeny: 'fsck/redeny',
  fsckDrop: 'fsck/drop',
  fsckDropMisfit: 'fsck/drop_misfit',
  fsckMendProfile: 'fsck/mend_profile',
  fsckLinkKey: 'fsck/link_key',
};
