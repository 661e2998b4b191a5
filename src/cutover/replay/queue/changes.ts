import type { Caller } from '../../../domain/caller.ts';
import { decodeReference, type ProfileChange } from '../../../domain/profile.ts';
import { pairsOf } from '../../../lib/collections/pairs.ts';

/** Whose API key a change was made with. */
export interface QueuedCaller extends Omit<Caller, 'client'> {
  organizationId: string;
}

/** What was changed here, as far as it has to be replayed to the legacy service. */
export type AcceptedChange =
  /**
   * PUT profile of the caller's own user, with the username also if they had it already; `released`: the one that a new
   * username took the place of, which orders the replays of users who exchange names (rules.ts).
   */
  | ({ kind: 'put'; released?: string } & ProfileChange)
  /** The names that were denied, each with its replacement. */
  | { kind: 'ban'; replacements: [username: string, replacement: string][] }
  | { kind: 'remove'; usernames: string[] }
  /** The whole denylist; its names are read with `readOverwrite`. */
  | { kind: 'overwrite'; list: string };

/** A change that waits to be replayed. */
export interface QueuedChange {
  /** Rises from entry to entry of an organization: `<ms>-<number>`, as of a Redis stream. */
  id: string;
  /** When it was accepted, ms by the store's clock. */
  at: number;
  caller: QueuedCaller;
  /** The caller's API key, to be opened by api-key-cipher.ts. */
  sealedKey: string;
  change: AcceptedChange;
  /** Who has begun to send it, as passed to `mark`. If that was another sender, its outcome is unknown. */
  sender?: string;
  /** Whether the current state is sent in place of the change. */
  isRetry: boolean;
}

/** Why a change is set aside. */
export interface AsideReason {
  /** The HTTP status of the legacy service's answer; 0 where it never answered. */
  status: number;
  /** In one line; without values and keys. */
  reason: string;
}

export interface SetAsideChange extends Omit<QueuedChange, 'sender' | 'isRetry'>, AsideReason {
  /** When it was set aside, ms by the store's clock. */
  setAsideAt: number;
}

/** Streams number entries by the store's clock. */
export function timeOf(id: string): number {
  return Number(id.split('-')[0]);
}

/** Those fields of an entry that say whose change it is (lua/lib/replay.lua). */
export function callerFields({ keyId, role, userId = '' }: QueuedCaller, sealed: string) {
  return { key: keyId, role, user: userId, sealed };
}

/** The fields of an entry (lua/lib/replay.lua). */
type EntryFields = Record<'key' | 'role' | 'user' | 'sealed' | 'kind' | 'change' | 'retry', string> & {
  /** When the change was accepted that this retries; ms. */
  accepted?: string;
};

/** A change as it waits; `id` and `fields` are those of its entry in the stream. */
export function toQueuedChange(
  organizationId: string,
  id: string,
  fields: string[],
  sender?: string | null,
): QueuedChange {
  const entry = Object.fromEntries(pairsOf(fields)) as EntryFields;
  return {
    ...common(organizationId, id, entry),
    ...(sender && { sender }),
    isRetry: entry.retry === '1',
  };
}

/** A change that was set aside; `row` is its entry in JSON, with the reason. */
export function toSetAsideChange(
  organizationId: string,
  [id, row]: readonly [string, string],
): SetAsideChange {
  const { status, reason, at, ...entry } = JSON.parse(row) as EntryFields &
    Record<'status' | 'reason' | 'at', string>;
  return { ...common(organizationId, id, entry), status: Number(status), reason, setAsideAt: Number(at) };
}

function common(organizationId: string, id: string, entry: EntryFields) {
  const { key, role, user, sealed, kind, change, accepted } = entry;
  const caller: QueuedCaller = { organizationId, keyId: key, role: role === 'admin' ? role : 'player' };
  if (user !== '') caller.userId = user;
  return {
    id,
    at: accepted === undefined ? timeOf(id) : Number(accepted),
    caller,
    sealedKey: sealed,
    change: toChange(kind, change),
  };
}

/** A put's images are stored as pairs of what they become and the file or reference. */
type StoredImage = ['unset' | 'file' | 'reference', string];

function toChange(kind: string, json: string): AcceptedChange {
  const stored = JSON.parse(json) as Record<string, unknown>;
  if (kind !== 'put') return { kind, ...stored } as unknown as AcceptedChange;
  const { picture, avatar, ...names } = stored as {
    username?: string;
    released?: string;
    picture?: StoredImage;
    avatar?: StoredImage;
  };
  const change: AcceptedChange = { kind, ...names };
  if (picture?.[0] === 'file') change.picture = { file: picture[1] };
  else if (picture)
    change.picture = picture[0] === 'unset' ? null : { reference: decodeReference(picture[1]) };
  if (avatar) change.avatar = avatar[0] === 'unset' ? null : decodeReference(avatar[1]);
  return change;
}

/** By the order in which Redis numbered them. */
export function byId({ id: one }: { id: string }, { id: other }: { id: string }): number {
  return timeOf(one) - timeOf(other) || Number(one.split('-')[1]) - Number(other.split('-')[1]);
}
