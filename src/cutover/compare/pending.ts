import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import type { Credentials } from '../forward/calls.ts';
import type { ComparedField } from './compare.ts';

export type Comparison =
  | { kind: 'same'; userId: string }
  | { kind: 'different'; userId: string; fields: readonly ComparedField[] }
  /** The user's profile here is what the legacy service showed a moment ago. */
  | { kind: 'adopted'; userId: string }
  /** The legacy service's response was not a profile, or too long. */
  | { kind: 'unreadable' };

/** Why something that the legacy service has may be missing here. */
export type Gap =
  | 'unmarked-change'
  | 'unknown-key'
  /** Beside one of these two, where the change may have brought a picture. */
  | 'unmarked-upload'
  | 'denylist-outcome-unknown'
  | 'denylist-response-unreadable'
  | 'denylist-change-interrupted';

/** Why a change that the legacy service accepted could not be adopted. */
export type AdoptionFailure = 'profile-not-shown' | 'overtaken' | 'store-unavailable' | 'mode-switched';

export const adoptionFailureTexts: Record<AdoptionFailure, string> = {
  'profile-not-shown': 'the legacy service did not show the profile',
  overtaken: 'other changes kept interfering',
  'store-unavailable': 'Redis was unavailable',
  'mode-switched': 'the mode was switched before it could be adopted',
};

/**
 * Who accepted an API key: only the legacy service, only Redis, or both; `agreed-for-nobody`: both, but for a request
 * that needs no user, and here the key has none.
 */
export type KeyFinding = 'unmapped' | 'refused' | 'agreed' | 'agreed-for-nobody';

/** Undefined if the status does not tell. `here`: as what Redis knows the key. */
function verdictOnKey(status: number, here: string, isForUser: boolean): KeyFinding | undefined {
  const isNobodys = here === 'no-user';
  const isKnownHere = here !== 'unknown' && !(isNobodys && isForUser);
  // Of a key that is nobody's, there may be no profile there either.
  if (status === 404 && isNobodys && isForUser) return undefined;
  if (status < 300 || status === 404) {
    if (!isKnownHere) return 'unmapped';
    return isNobodys ? 'agreed-for-nobody' : 'agreed';
  }
  // A denylist may be refused for the key's role; a read of one's own profile, only for the key.
  const isOwnRead = here === 'none' || here === 'profile';
  return (status === 401 && isKnownHere) || (status === 403 && isOwnRead) ? 'refused' : undefined;
}

/** What is kept of a key that the two judge differently. */
export interface KeyEntry {
  userAgent: string;
  /** ms since 1970, by the store's clock */
  at: number;
  /** Whether its last request was for the profile of its user. */
  isForUser?: boolean;
  /** With which the legacy service answered it. */
  status?: number;
  /** Of a refusal: whether a clean verify has found the key in the source since. */
  isInSource?: boolean;
}

interface FoundKey {
  finding: KeyFinding;
  entry: Omit<KeyEntry, 'at'>;
}

/** What was found of one organization since the last flush. */
export interface Pending {
  since: number;
  counts: Map<string, number>;
  /** In which fields they differ; in none if they match. */
  users: Map<string, readonly ComparedField[]>;
  failed: Map<string, { number: number; reason: AdoptionFailure }>;
  keys: Map<string, FoundKey>;
  gaps: Map<Gap, NotedGap>;
}

/** How often a gap was found. */
export interface NotedGap {
  count: number;
  /** ms since 1970 */
  first: number;
  /** For how many ms more a change may take effect. */
  pending: number;
}

/**
 * The most users, and the most keys, of one organization that are kept until they are saved; further users are only
 * counted. Also the most organizations with unsaved gaps.
 */
export const maxPending = 20_000;

/**
 * What was found and is not saved yet, by organization, without values of profiles or API keys. Only the last result for
 * a user or a key counts.
 */
export function createPending() {
  let pending = new Map<string, Pending>();

  function pendingOf(organizationId: string): Pending {
    return getOrInsert(pending, organizationId, () => ({
      since: 0,
      counts: new Map(),
      users: new Map(),
      failed: new Map(),
      keys: new Map(),
      gaps: new Map(),
    }));
  }

  return {
    /** `since`: since when the mode in which the comparison was made has been in force. */
    recordComparison: (organizationId: string, since: number, comparison: Comparison): void => {
      let found = pendingOf(organizationId);
      if (found.since !== since) {
        // Results of two modes must not be mixed.
        found = { ...found, since, counts: new Map(), users: new Map() };
        pending.set(organizationId, found);
      }
      const { counts, users } = found;
      const fields = comparison.kind === 'different' ? comparison.fields : [];
      for (const name of [comparison.kind, ...fields.map((field) => `field:${field}`)]) {
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
      if (comparison.kind !== 'unreadable') setBounded(users, comparison.userId, fields);
    },
    /**
     * Whether the two agree about a key, by the status with which the legacy service answered its request. `isForUser`:
     * the request was for the profile of the key's user.
     */
    judgeKey: (
      { organizationId, sha256, userAgent }: Pick<Credentials, 'organizationId' | 'sha256' | 'userAgent'>,
      status: number,
      here: string,
      isForUser = true,
    ): KeyFinding | undefined => {
      const finding = verdictOnKey(status, here, isForUser);
      if (finding === undefined) return undefined;
      const { keys } = pendingOf(organizationId);
      // It must not hide that the key is not accepted here for a profile.
      if (finding === 'agreed-for-nobody' && keys.get(sha256)?.finding === 'unmapped') return finding;
      const entry = { userAgent: (userAgent ?? '').slice(0, 200), isForUser, status };
      setBounded(keys, sha256, { finding, entry });
      return finding;
    },
    /** `number`: of the change; an adoption with a higher one has repaired the failure. */
    recordFailedAdoption: (
      organizationId: string,
      userId: string,
      number: number,
      reason: AdoptionFailure,
    ): void => setBounded(pendingOf(organizationId).failed, userId, { number, reason }),
    /** Adds to what is pending of that gap. */
    recordGap: (organizationId: string, gap: Gap, noted: NotedGap): void => {
      const { gaps } = pendingOf(organizationId);
      const known = gaps.get(gap) ?? { ...noted, count: 0 };
      gaps.set(gap, {
        count: known.count + noted.count,
        first: Math.min(known.first, noted.first),
        pending: Math.max(known.pending, noted.pending),
      });
    },
    /** Returns what is pending, and starts over. */
    take: (): ReadonlyMap<string, Pending> => {
      const taken = pending;
      pending = new Map();
      return taken;
    },
  };
}

function setBounded<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size < maxPending || map.has(key)) map.set(key, value);
}
