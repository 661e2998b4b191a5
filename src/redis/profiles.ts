import type { Caller } from '../domain/caller.ts';
import {
  decodeReference,
  encodeReference,
  fillTemplate,
  pendingGraceMs,
  type Picture,
  type Profile,
  type ProfileChange,
  type ReferencedImage,
} from '../domain/profile.ts';
import { ruleBroken, normalizedName } from '../domain/usernames.ts';
import type { RedisClient } from './connection/client.ts';
import { script } from './connection/script-loader.ts';
import {
  createRetryBudget,
  readAgain,
  runChange,
  toCaller,
  type ChangeArguments,
  type JsonText,
  type KeyReply,
  type GenerationRefusal,
  type WriteSnapshot,
} from './changes.ts';

/** A profile in a reply (read_profile in lua/lib/store.lua). */
type ProfileReply = [
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

const findProfile = script<
  [sha256: string],
  ['unknown'] | ['no-user' | 'none', KeyReply] | ['profile', KeyReply, ProfileReply]
>('profile/read');

const put = script<
  [...ChangeArguments, ...string[]],
  | ['put', unusedFile: JsonText, ProfileReply]
  | [GenerationRefusal | 'staged' | 'denied' | 'taken' | 'lapsed']
  | ['object-not-found' | 'object-not-in-collection', field: 'picture' | 'avatar']
>('profile/put');

export type ReadOutcome =
  | { kind: 'unknown' }
  | { kind: 'no-user'; caller: Caller }
  | { kind: 'none'; caller: Caller }
  | { kind: 'profile'; caller: Caller; profile: Profile };

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
 * Authenticates and reads the caller's own profile in one round trip (contract 4.1). A key that is unknown,
 * revoked, expired, or of another organization is `unknown`.
 */
export async function readOwnProfile(store: RedisClient, base: string, sha256: string): Promise<ReadOutcome> {
  const reply = await findProfile(store, base, sha256);
  switch (reply[0]) {
    case 'unknown':
      return { kind: 'unknown' };
    case 'profile':
      return { kind: 'profile', caller: toCaller(reply[1]), profile: toProfile(reply[2]) };
    default:
      return { kind: reply[0], caller: toCaller(reply[1]) };
  }
}

/**
 * Creates or changes a user's profile, all of the change or nothing (contract 4.2). Repeating the user's own current
 * name is always allowed.
 */
export async function putProfile(
  store: RedisClient,
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

    const reply = await runChange(
      put,
      store,
      base,
      snapshot,
      userId,
      snapshot.username ?? '',
      ...nameArguments(snapshot, username),
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

/** The username to set, and normalized it and the current one, which is released. */
function nameArguments(snapshot: WriteSnapshot, username: string | undefined): [string, string, string] {
  if (username === undefined) return ['', '', ''];
  const current =
    snapshot.username === undefined ? '' : normalizedName(snapshot.username, snapshot.settings.comparison);
  return [username, normalizedName(username, snapshot.settings.comparison), current];
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

/** The profile in a script's reply (lib/store.lua). */
function toProfile(reply: ProfileReply): Profile {
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

/** The catalogue comes first, then the URL that came with this profile, then the organization's template. */
function toImage(encoded: string, entry: JsonText, kept: JsonText, template: JsonText): ReferencedImage {
  const reference = decodeReference(encoded);
  if (entry !== false) return { reference, url: entry };
  if (kept !== false) return { reference, url: kept };
  return template === false ? { reference } : { reference, url: fillTemplate(template, reference) };
}
