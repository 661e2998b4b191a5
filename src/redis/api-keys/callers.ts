import { hash } from 'node:crypto';
import type { Caller } from '../../domain/caller.ts';
import {
  decodeReference,
  fillTemplate,
  type Picture,
  type Profile,
  type ReferencedImage,
} from '../../domain/profile.ts';
import type { RedisClient } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';
import { toWriteSnapshot, type JsonText, type SettingsReply, type WriteSnapshot } from '../write-snapshot.ts';

/** An API key in a reply (credentials in lua/lib/store.lua). */
type KeyReply = [id: string, role: string, user: JsonText, client: JsonText];

/** A profile in a reply (read_profile in lua/lib/store.lua). */
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

const findProfile = script<
  [sha256: string],
  ['unknown'] | ['no-user' | 'none', KeyReply] | ['profile', KeyReply, ProfileReply]
>('profile/read');

const findCaller = script<
  [sha256: string],
  ['unknown'] | ['known', KeyReply, SettingsReply, username: JsonText]
>('api_key/authenticate');

export type ReadOutcome =
  | { kind: 'unknown' }
  | { kind: 'no-user'; caller: Caller }
  | { kind: 'none'; caller: Caller }
  | { kind: 'profile'; caller: Caller; profile: Profile };

export type AuthenticationOutcome =
  { kind: 'unknown' } | { kind: 'known'; caller: Caller; snapshot: WriteSnapshot };

/** The only form in which a key is stored or looked up: the SHA-256 of its UTF-8 bytes, in lower-case hex. */
export function hashApiKey(apiKey: string | Buffer): string {
  return hash('sha256', apiKey, 'hex');
}

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

/** Authenticates, and brings along what a write by this caller has to be judged by. */
export async function authenticate(
  store: RedisClient,
  base: string,
  sha256: string,
): Promise<AuthenticationOutcome> {
  const reply = await findCaller(store, base, sha256);
  if (reply[0] === 'unknown') return { kind: 'unknown' };
  return { kind: 'known', caller: toCaller(reply[1]), snapshot: toWriteSnapshot(reply[2], reply[3]) };
}

function toCaller([keyId, role, user, client]: KeyReply): Caller {
  const caller: Caller = { keyId, role: role === 'admin' ? 'admin' : 'player' };
  if (user !== false) caller.userId = user;
  if (client !== false) caller.client = client;
  return caller;
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
