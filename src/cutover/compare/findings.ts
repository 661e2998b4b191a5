import { repeat } from '../../lib/repeat.ts';
import type { Log } from '../../log.ts';
import { forwardedOrganizationsKey, organizationBase } from '../../redis/keys.ts';
import type { ComparedField } from './fields.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { recordComparisons } from '../scripts.ts';

/** What became of one comparison. */
export type Comparison =
  | { kind: 'same'; userId: string }
  | { kind: 'different'; userId: string; fields: readonly ComparedField[] }
  /** The user's profile here is what the legacy service showed a moment ago. */
  | { kind: 'adopted'; userId: string }
  /** The legacy service's response was no profile, or too long. */
  | { kind: 'unreadable' };

/**
 * Why something may be missing here, although the legacy service has it: a change could not be marked as unsettled
 * while Redis was away; the caller's key is unknown here; or it is not known what became of a denylist change.
 */
export type Gap =
  | 'unmarked-change'
  | 'unknown-key'
  | 'denylist-outcome-unknown'
  | 'denylist-response-unreadable'
  | 'denylist-change-interrupted';

/**
 * Why a change that the legacy service accepted could not be adopted: it did not show the profile; denylist changes or
 * a rebuild of the name index kept coming between; Redis was away; or the mode had been switched by then.
 */
export type AdoptionFailure = 'profile-not-shown' | 'overtaken' | 'store-unavailable' | 'mode-switched';

/** The same in words for people. */
export const adoptionFailureTexts: Record<AdoptionFailure, string> = {
  'profile-not-shown': 'the legacy service did not show the profile',
  overtaken: 'other changes kept coming between',
  'store-unavailable': 'Redis was away',
  'mode-switched': 'the mode was switched before',
};

/** How the two judged an API key: only the legacy service accepted it, only Redis did, or both. */
export type KeyFinding = 'unmapped' | 'refused' | 'agreed';

export interface Findings {
  /** `since`: from when on the mode holds that the comparison was made in. */
  compared: (organizationId: string, since: number, comparison: Comparison) => void;
  judgedKey: (
    organizationId: string,
    finding: KeyFinding,
    sha256: string,
    userAgent: string | undefined,
  ) => void;
  /** `number`: of the change; an adoption that drew a higher one has made the failure good. */
  adoptionFailed: (organizationId: string, userId: string, number: number, reason: AdoptionFailure) => void;
  /** `pendingMs`: for how long what it is about may still take effect in the legacy service. */
  gap: (organizationId: string, gap: Gap, pendingMs: number) => void;
  /** Whether a gap is not on record yet. */
  hasUnsavedGaps: () => boolean;
  /** Puts an organization on the list of those whose requests are forwarded, before anything is recorded of it. */
  register: (organizationId: string) => Promise<void>;
  /** Saves what has been found so far. */
  flush: () => Promise<void>;
  close: () => Promise<void>;
}

/** What was found of one organization since the last flush. */
interface Pending {
  since: number;
  counts: Map<string, number>;
  users: Map<string, readonly ComparedField[] | undefined>;
  failures: Map<string, { number: number; reason: AdoptionFailure }>;
  keys: Map<string, { finding: KeyFinding; entry: string }>;
  gaps: Map<Gap, { count: number; first: number; pending: number }>;
}

const flushInterval = 1000;

/** Users and keys that one call of the script takes. */
const partSize = 200;

/** Users and keys that wait for the store at most; beyond, findings are only counted. */
const mostPending = 20_000;

/**
 * Gathers what comparisons find, and saves it once a second: no request waits for it, and of a user or a key only the
 * last finding counts. What is recorded has neither a value of a profile nor an API key.
 */
export function createFindings(store: RedisClient, prefix: string, log: Log): Findings {
  let pending = new Map<string, Pending>();
  let unsavedGaps = 0;
  const registered = new Set<string>();

  const pendingOf = (organizationId: string): Pending => {
    let found = pending.get(organizationId);
    if (found === undefined) {
      found = {
        since: 0,
        counts: new Map(),
        users: new Map(),
        failures: new Map(),
        keys: new Map(),
        gaps: new Map(),
      };
      pending.set(organizationId, found);
    }
    return found;
  };

  /** A gap is never dropped: it waits until the store is back. */
  function note(organizationId: string, gap: Gap, count: number, first: number, pendingMs: number): void {
    const { gaps } = pendingOf(organizationId);
    const known = gaps.get(gap);
    gaps.set(gap, {
      count: count + (known?.count ?? 0),
      first: Math.min(first, known?.first ?? first),
      pending: Math.max(pendingMs, known?.pending ?? 0),
    });
  }

  async function register(organizationId: string): Promise<void> {
    if (registered.has(organizationId)) return;
    await store.sadd(forwardedOrganizationsKey(prefix), organizationId);
    registered.add(organizationId);
  }

  async function save(organizationId: string, found: Pending): Promise<void> {
    const { since, counts, users, failures, keys, gaps } = found;
    await register(organizationId);
    const base = organizationBase(prefix, organizationId);
    const [allUsers, allFailures, allKeys] = [[...users], [...failures], [...keys]];
    const longest = Math.max(allUsers.length, allFailures.length, allKeys.length);
    for (let at = 0; at === 0 || at < longest; at += partSize) {
      const part = allUsers.slice(at, at + partSize);
      const keyPart = allKeys.slice(at, at + partSize);
      const judged = (wanted: KeyFinding): [string, string][] =>
        keyPart.flatMap(([sha256, { finding, entry }]) => (finding === wanted ? [[sha256, entry]] : []));
      const findings = {
        counts: at === 0 ? Object.fromEntries(counts) : {},
        differing: Object.fromEntries(part.filter(([, entry]) => entry !== undefined)),
        matching: part.flatMap(([user, entry]) => (entry === undefined ? [user] : [])),
        failed: Object.fromEntries(allFailures.slice(at, at + partSize)),
        unmapped: Object.fromEntries(judged('unmapped')),
        refused: Object.fromEntries(judged('refused')),
        agreed: judged('agreed').map(([sha256]) => sha256),
        gaps: at === 0 ? Object.fromEntries(gaps) : {},
      };
      await recordComparisons(store, base, since, JSON.stringify(findings));
    }
  }

  async function flush(): Promise<void> {
    const saving = pending;
    pending = new Map();
    for (const [organizationId, found] of saving) {
      try {
        await save(organizationId, found);
        for (const { count } of found.gaps.values()) unsavedGaps -= count;
      } catch (error) {
        for (const [gap, { count, first, pending: pendingMs }] of found.gaps)
          note(organizationId, gap, count, first, pendingMs);
        log.warn('the findings of comparisons with the legacy service could not be saved', {
          reason: String(error),
        });
      }
    }
  }

  const flushing = repeat(flush, flushInterval);
  return {
    compared: (organizationId, since, comparison) => {
      let found = pendingOf(organizationId);
      if (found.since !== since) {
        // Findings of two modes do not mix.
        found = { ...found, since, counts: new Map(), users: new Map() };
        pending.set(organizationId, found);
      }
      const { counts, users } = found;
      const count = (name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1);
      count(comparison.kind);
      if (comparison.kind === 'unreadable') return;
      const { userId } = comparison;
      const isNew = comparison.kind === 'different';
      if (isNew) for (const field of comparison.fields) count(`field:${field}`);
      if (users.size >= mostPending && !users.has(userId)) return;
      users.set(userId, isNew ? comparison.fields : undefined);
    },
    judgedKey: (organizationId, finding, sha256, userAgent) => {
      const { keys } = pendingOf(organizationId);
      if (keys.size >= mostPending && !keys.has(sha256)) return;
      const entry = JSON.stringify({ userAgent: (userAgent ?? '').slice(0, 200), at: Date.now() });
      keys.set(sha256, { finding, entry });
    },
    adoptionFailed: (organizationId, userId, number, reason) => {
      const { failures } = pendingOf(organizationId);
      if (failures.size < mostPending || failures.has(userId)) failures.set(userId, { number, reason });
    },
    register,
    hasUnsavedGaps: () => unsavedGaps > 0,
    gap: (organizationId, gap, pendingMs) => {
      unsavedGaps += 1;
      note(organizationId, gap, 1, Date.now(), pendingMs);
    },
    flush,
    close: async () => {
      await flushing.stop();
      await flush();
    },
  };
}
