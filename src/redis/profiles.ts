import { encodeReference, pendingGraceMs, type Profile, type ProfileChange } from '../domain/profile.ts';
import { ruleBroken } from '../domain/usernames.ts';
import { toProfile, type ProfileReply } from './api-keys/callers.ts';
import type { RedisClient } from './connection/client.ts';
import { script } from './connection/script-loader.ts';
import {
  createRetryBudget,
  normalizedName,
  readAgain,
  runChange,
  type ChangeArguments,
  type JsonText,
  type Refusal,
  type WriteSnapshot,
} from './write-snapshot.ts';

const put = script<
  [...ChangeArguments, ...string[]],
  | ['put', unusedFile: JsonText, ProfileReply]
  | [Refusal | 'staged' | 'denied' | 'taken' | 'lapsed']
  | ['object-not-found' | 'object-not-in-collection', field: 'picture' | 'avatar']
>('profile/put');

const linkWallet = script<[user: string, address: string, field: 'w' | 'wu'], 'set' | 'unknown-organization'>(
  'profile/set_wallet',
);

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

/**
 * Links a wallet to a user in place of any other; only a verified one is ever shown (contract 2.1). A user
 * without a profile gets one.
 */
export async function setWallet(
  store: RedisClient,
  base: string,
  userId: string,
  wallet: { address: string; isVerified: boolean },
): Promise<'set' | 'unknown-organization'> {
  return await linkWallet(store, base, userId, wallet.address, wallet.isVerified ? 'w' : 'wu');
}

/** The username to set, its form, and the form of the current one, which is released. */
function nameArguments(snapshot: WriteSnapshot, username: string | undefined): [string, string, string] {
  if (username === undefined) return ['', '', ''];
  const current = snapshot.username === undefined ? '' : normalizedName(snapshot, snapshot.username);
  return [username, normalizedName(snapshot, username), current];
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
