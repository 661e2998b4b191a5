import { hash } from 'node:crypto';
import type { Caller } from '../../domain/caller.ts';
import type { Profile } from '../../domain/profile.ts';
import type { RedisClient } from '../connection/client.ts';
import { toProfile, type ProfileReply } from '../profiles.ts';
import type { ScriptCommand, ScriptFiles } from '../connection/script-loader.ts';
import { toWriteSnapshot, type JsonText, type SettingsReply, type WriteSnapshot } from '../write-snapshot.ts';

/** The reply of lua/lib/store.lua. */
type KeyReply = [id: string, role: string, user: JsonText, client: JsonText];

export interface CredentialScripts {
  readProfile: ScriptCommand<
    [sha256: string],
    ['unknown'] | ['no-user' | 'none', KeyReply] | ['profile', KeyReply, ProfileReply]
  >;
  authenticate: ScriptCommand<
    [sha256: string],
    ['unknown'] | ['known', KeyReply, SettingsReply, username: JsonText]
  >;
}

type CredentialStore = RedisClient & CredentialScripts;

export const credentialScripts: ScriptFiles<CredentialScripts> = {
  readProfile: 'profile/read',
  authenticate: 'api_key/authenticate',
};

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
export async function readOwnProfile(
  store: CredentialStore,
  base: string,
  sha256: string,
): Promise<ReadOutcome> {
  const reply = await store.readProfile(base, sha256);
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
  store: CredentialStore,
  base: string,
  sha256: string,
): Promise<AuthenticationOutcome> {
  const reply = await store.authenticate(base, sha256);
  if (reply[0] === 'unknown') return { kind: 'unknown' };
  return { kind: 'known', caller: toCaller(reply[1]), snapshot: toWriteSnapshot(reply[2], reply[3]) };
}

function toCaller([keyId, role, user, client]: KeyReply): Caller {
  const caller: Caller = { keyId, role: role === 'admin' ? 'admin' : 'player' };
  if (user !== false) caller.userId = user;
  if (client !== false) caller.client = client;
  return caller;
}
