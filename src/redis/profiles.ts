import type { Caller } from '../domain/caller.ts';
import { encodeReference, pendingGraceMs, type Profile, type ProfileChange } from '../domain/profile.ts';
import { normalizedName, ruleFault } from '../domain/usernames.ts';
import type { RedisClient } from './connection/client.ts';
import { script } from './connection/script-loader.ts';
import { runChange, untilDecided, type ChangeArguments, type WriteSnapshot } from './changes.ts';

export type ReadOutcome =
  | { kind: 'unknown' }
  | { kind: 'no-user' | 'none'; caller: Caller }
  | { kind: 'profile'; caller: Caller; profile: Profile };

/**
 * Authenticates and reads the caller's own profile in one round trip (contract 4.1). A key that is unknown, revoked,
 * expired, or of another organization is `unknown`.
 */
export const readOwnProfile = script<[sha256: string], ReadOutcome>('profile/read');

type Decided =
  /** `unusedFile`: the picture file that the profile referred to before, and no longer does. */
  | { kind: 'put'; profile: Profile; unusedFile?: string }
  | { kind: 'denied' | 'taken' }
  | { kind: 'object-not-found' | 'object-not-in-collection'; field: 'picture' | 'avatar' }
  /** The uploaded file was pending for too long: nothing was changed. */
  | { kind: 'lapsed' };

export type PutOutcome =
  | Decided
  | { kind: 'not-allowed'; reason: string }
  /** Another operation held the names for longer than a request may wait. */
  | { kind: 'busy' };

const put = script<[...ChangeArguments, ...string[]], Decided | { kind: 'retry' }>('profile/put');

/**
 * Creates or changes a user's profile, all of the change or nothing (contract 4.2). Repeating the user's own current
 * name is always allowed, also in another spelling that counts as the same.
 */
export async function putProfile(
  store: RedisClient,
  base: string,
  userId: string,
  change: ProfileChange,
  known: WriteSnapshot,
): Promise<PutOutcome> {
  const attempt = async (snapshot: WriteSnapshot): Promise<PutOutcome | undefined> => {
    const username = change.username === snapshot.username ? undefined : change.username;
    const [name, normalized, own] = nameArguments(snapshot, username);
    const broken = normalized === own ? undefined : ruleFault(name, snapshot.settings);
    if (broken !== undefined) return { kind: 'not-allowed', reason: broken };

    const reply = await runChange(
      put,
      store,
      base,
      snapshot,
      userId,
      snapshot.username ?? '',
      name,
      normalized,
      own,
      ...imageArguments(change.picture),
      ...imageArguments(change.avatar && { reference: change.avatar }),
      String(pendingGraceMs),
      change.username === undefined ? 'absent' : 'given',
    );
    return reply.kind === 'retry' ? undefined : reply;
  };
  return (await untilDecided(store, base, known, attempt, userId)) ?? { kind: 'busy' };
}

/** The username to set, its normalized form, and that of the current one, which is released. */
function nameArguments(snapshot: WriteSnapshot, username: string | undefined): [string, string, string] {
  if (username === undefined) return ['', '', ''];
  const current =
    snapshot.username === undefined ? '' : normalizedName(snapshot.username, snapshot.settings.comparison);
  return [username, normalizedName(username, snapshot.settings.comparison), current];
}

function imageArguments(image: ProfileChange['picture']): [string, string] {
  if (image === undefined) return ['keep', ''];
  if (image === null) return ['unset', ''];
  return 'file' in image ? ['file', image.file] : ['reference', encodeReference(image.reference)];
}
