import type { OrganizationStore } from '../organizations.ts';
import type { ScriptCommand, ScriptFiles } from '../connection/script-loader.ts';
import type { Refusal } from '../write-snapshot.ts';

type Text = string | null;

/** A profile in the reply of lua/fsck/look_profiles.lua. */
export type SeenProfile =
  | ['none' | 'wrong-type']
  | [
      'profile',
      username: Text,
      t: Text,
      pictureFile: Text,
      pictureReference: Text,
      avatarReference: Text,
      unreferencedSince: Text,
    ];

/** A row in the reply of lua/fsck/look_names.lua. */
type SeenName = [username: Text, holder: Text, holderUsername: Text, place: 'found' | 'misplaced' | null];

/** `changed`: what was to be repaired is no longer so. */
export type RepairReply = 'repaired' | 'changed' | Refusal;

export interface FsckScripts {
  fsckLookProfiles: ScriptCommand<string[], SeenProfile[]>;
  fsckLookNames: ScriptCommand<string[], ['stale'] | ['seen', SeenName[], buckets: Text]>;
  fsckClaimName: ScriptCommand<string[], RepairReply | 'staged'>;
  fsckRepair: ScriptCommand<
    [generation: string, expected: string, commands: string, audit: string],
    RepairReply
  >;
}

/** Of the organizations' scripts it needs the one that registers them. */
export type FsckStore = OrganizationStore & FsckScripts;

export const fsckScripts: ScriptFiles<FsckScripts> = {
  fsckLookProfiles: 'fsck/look_profiles',
  fsckLookNames: 'fsck/look_names',
  fsckClaimName: 'fsck/claim_name',
  fsckRepair: 'fsck/repair',
};
