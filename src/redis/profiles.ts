import { decodeReference, encodeReference, fillTemplate } from '../domain/objects.ts';
import {
  pendingGraceMs,
  type Picture,
  type Profile,
  type ProfileChange,
  type ReferencedImage,
} from '../domain/profile.ts';
import { ruleBroken } from '../domain/usernames.ts';
import type { RedisClient } from './connection/client.ts';
import type { ScriptCommand, ScriptFiles } from './connection/script-loader.ts';
import {
  createRetryBudget,
  normalizedName,
  readAgain,
  type JsonText,
  type Refusal,
  type WriteSnapshot,
} from './write-snapshot.ts';

/** The reply of lua/lib/store.lua. */
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

export interface ProfileScripts {
  putProfile: ScriptCommand<
    [epoch: number, ...string[]],
    | ['put', unusedFile: JsonText, ProfileReply]
    | [Refusal | 'staged' | 'denied' | 'taken' | 'lapsed']
    | ['object-not-found' | 'object-not-in-collection', field: 'picture' | 'avatar']
  >;
  setWallet: ScriptCommand<
    [user: string, address: string, field: 'w' | 'wu'],
    'set' | 'unknown-organization'
  >;
}

type ProfileStore = RedisClient & ProfileScripts;

export const profileScripts: ScriptFiles<ProfileScripts> = {
  putProfile: 'profile/put',
  setWallet: 'profile/set_wallet',
};

export type PutOutcome =
  /** `unusedFile`: the picture file that the profile referred to before, and no longer does. */
  | { kind: 'put'; profile: Profile; unusedFile?: string }
  | { kind: 'not-allowed'; reason: string }
  | { kind: 'denied' }
  | { kind: 'taken' }
  | { kind: 'object-not-found' | 'object-not-in-collection'; field: 'picture' | 'avatar' }
  /** Another operation held the names for longer than a request may wait. */
  | { kind: 'busy' }
  /** The uploaded file was pending for too long: nothing was changed. */
  | { kind: 'lapsed' };

/**
 * Creates or changes a user's profile, all of the change or nothing (contract 4.2). A change that repeats the
 * user's own current name leaves it alone, whatever the rules say of it.
 */
export async function putProfile(
  store: ProfileStore,
  base: string,
  userId: string,
  change: ProfileChange,
  known: WriteSnapshot,
): Promise<PutOutcome> {
  const budget = createRetryBudget();
  let snapshot = known;
  for (;;) {
    const username = change.username === snapshot.username ? undefined : change.username;
    const broken = username === undefined ? undefined : ruleBroken(username, snapshot.settings);
    if (broken !== undefined) return { kind: 'not-allowed', reason: broken };

    const reply = await store.putProfile(
      base,
      snapshot.epoch,
      userId,
      snapshot.index,
      snapshot.username ?? '',
      snapshot.username === undefined ? '' : normalizedName(snapshot, snapshot.username),
      username ?? '',
      username === undefined ? '' : normalizedName(snapshot, username),
      ...pictureArguments(change.picture),
      ...avatarArguments(change.avatar),
      String(pendingGraceMs),
    );
    switch (reply[0]) {
      case 'put':
        return {
          kind: 'put',
          profile: toProfile(reply[2]),
          ...(reply[1] !== false && { unusedFile: reply[1] }),
        };
      case 'stale':
      case 'frozen':
      case 'staged':
        if (!(await budget.wait())) return { kind: 'busy' };
        snapshot = await readAgain(store, base, known, userId);
        continue;
      case 'object-not-found':
      case 'object-not-in-collection':
        return { kind: reply[0], field: reply[1] };
      case 'denied':
      case 'taken':
      case 'lapsed':
        return { kind: reply[0] };
    }
  }
}

/**
 * Links a wallet to a user in place of any other; only a verified one is ever shown (contract 2.1). A user
 * without a profile gets one.
 */
export async function setWallet(
  store: ProfileStore,
  base: string,
  userId: string,
  wallet: { address: string; isVerified: boolean },
): Promise<'set' | 'unknown-organization'> {
  return await store.setWallet(base, userId, wallet.address, wallet.isVerified ? 'w' : 'wu');
}

/** The profile in a script's reply (lib/store.lua). */
export function toProfile(reply: ProfileReply): Profile {
  const [username, file, reference, url, avatar, avatarUrl, wallet, pictureEntry, avatarEntry, template] =
    reply;
  const profile: Profile = {};
  if (username !== false) profile.username = username;
  const picture = toPicture(file, reference, url, pictureEntry, template);
  if (picture !== undefined) profile.picture = picture;
  if (avatar !== false) profile.avatar = toImage(avatar, avatarEntry, avatarUrl, template);
  if (wallet !== false) profile.wallet = wallet;
  return profile;
}

function toPicture(
  file: JsonText,
  reference: JsonText,
  url: JsonText,
  entry: JsonText,
  template: JsonText,
): Picture | undefined {
  if (file !== false) return { kind: 'file', name: file };
  if (reference !== false) return { kind: 'reference', ...toImage(reference, entry, url, template) };
  return url === false ? undefined : { kind: 'url', url };
}

/** The catalogue speaks first; then the URL that came with this very profile; then the organization's template. */
function toImage(encoded: string, entry: JsonText, kept: JsonText, template: JsonText): ReferencedImage {
  const reference = decodeReference(encoded);
  if (entry !== false) return { reference, url: entry };
  if (kept !== false) return { reference, url: kept };
  return template === false ? { reference } : { reference, url: fillTemplate(template, reference) };
}

function pictureArguments(picture: ProfileChange['picture']): [string, string] {
  if (picture === undefined) return ['keep', ''];
  if (picture === null) return ['unset', ''];
  return 'file' in picture ? ['file', picture.file] : ['reference', encodeReference(picture.reference)];
}

function avatarArguments(avatar: ProfileChange['avatar']): [string, string] {
  if (avatar === undefined) return ['keep', ''];
  return avatar === null ? ['unset', ''] : ['reference', encodeReference(avatar)];
}
