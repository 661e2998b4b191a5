import { setImmediate as nextPhase } from 'node:timers/promises';
import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import { repeat } from '../../lib/repeat.ts';
import type { Log } from '../../log.ts';
import { forwardedOrganizationsKey, organizationBase } from '../../redis/keys.ts';
import type { Credentials } from '../forward/calls.ts';
import type { ComparedField } from './compare.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';

const recordComparisons = script<[since: number, findings: string], null>('cutover/record_comparisons');

type Comparison =
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
  | 'denylist-outcome-unknown'
  | 'denylist-response-unreadable'
  | 'denylist-change-interrupted';

/** Why a change that the legacy service accepted could not be adopted. */
export type AdoptionFailure = 'profile-not-shown' | 'overtaken' | 'store-unavailable' | 'mode-switched';

export const adoptionFailureTexts: Record<AdoptionFailure, string> = {
  'profile-not-shown': 'the legacy service did not show the profile',
  overtaken: 'other changes kept coming between',
  'store-unavailable': 'Redis was unavailable',
  'mode-switched': 'the mode was switched before',
};

/** Who accepted an API key: only the legacy service, only Redis, or both. */
type KeyFinding = 'unmapped' | 'refused' | 'agreed';

/** Undefined if the status does not tell. */
function judgeKey(status: number, here: string): KeyFinding | undefined {
  const isKnownHere = here !== 'unknown' && here !== 'no-user';
  if (status < 300 || status === 404) return isKnownHere ? 'agreed' : 'unmapped';
  return status === 401 && isKnownHere ? 'refused' : undefined;
}

export type Findings = ReturnType<typeof createFindings>;

/** What was found of one organization since the last flush. */
interface Pending {
  since: number;
  counts: Map<string, number>;
  /** In which fields they differ; in none if they match. */
  users: Map<string, readonly ComparedField[]>;
  failed: Map<string, { number: number; reason: AdoptionFailure }>;
  keys: Map<string, { finding: KeyFinding; entry: string }>;
  gaps: Map<Gap, NotedGap>;
}

interface NotedGap {
  count: number;
  /** ms since 1970 */
  first: number;
  /** For how many ms more a change may take effect. */
  pending: number;
}

const flushInterval = 1000;

/** Users and keys that one call of the script takes. */
const partSize = 200;

/** Users and keys that wait for the store at most; beyond, findings are only counted. Also organizations with gaps. */
const maxPending = 20_000;

/**
 * Collects what comparing finds and saves it once a second, without values of profiles or API keys: no request waits
 * for it, and only the last result for a user or a key counts.
 */
export function createFindings(store: RedisClient, prefix: string, log: Log) {
  let pending = new Map<string, Pending>();
  /** How many there are in each organization. */
  const unsavedGaps = new Map<string, number>();
  const registered = new Set<string>();
  /** Whether the last flush could not save everything. */
  let isFailing = false;

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

  /** A gap is never dropped: it is kept until the store is back. */
  function note(organizationId: string, gap: Gap, noted: NotedGap): void {
    const { gaps } = pendingOf(organizationId);
    const known = gaps.get(gap) ?? { ...noted, count: 0 };
    gaps.set(gap, {
      count: known.count + noted.count,
      first: Math.min(known.first, noted.first),
      pending: Math.max(known.pending, noted.pending),
    });
  }

  function countUnsaved(organizationId: string, more: number): void {
    const count = (unsavedGaps.get(organizationId) ?? 0) + more;
    if (count > 0) unsavedGaps.set(organizationId, count);
    else unsavedGaps.delete(organizationId);
  }

  /** Puts an organization on the list of those whose requests are forwarded, before anything is recorded of it. */
  async function register(organizationId: string): Promise<void> {
    if (registered.has(organizationId)) return;
    await store.sadd(forwardedOrganizationsKey(prefix), organizationId);
    registered.add(organizationId);
  }

  async function save(organizationId: string, found: Pending): Promise<void> {
    const { since, ...maps } = found;
    await register(organizationId);
    const base = organizationBase(prefix, organizationId);
    const longest = Math.max(...Object.values(maps).map(({ size }) => size));
    for (let at = 0; at === 0 || at < longest; at += partSize) {
      const parts = Object.entries(maps).map(
        ([name, map]) => [name, Object.fromEntries([...map].slice(at, at + partSize))] as const,
      );
      await recordComparisons(store, base, since, JSON.stringify(Object.fromEntries(parts)));
    }
  }

  async function flush(): Promise<void> {
    if (pending.size === 0) return;
    const saving = pending;
    pending = new Map();
    let reason: string | undefined;
    for (const [organizationId, found] of saving) {
      try {
        await save(organizationId, found);
        for (const { count } of found.gaps.values()) countUnsaved(organizationId, -count);
      } catch (error) {
        for (const [gap, noted] of found.gaps) note(organizationId, gap, noted);
        reason ??= String(error);
        // A store that is away fails so fast that nothing else would get its turn.
        await nextPhase();
      }
    }
    const what = 'comparisons with the legacy service and gaps';
    if (reason !== undefined && !isFailing)
      log.warn(`${what} cannot be saved; until gaps are, no switch is made`, { reason });
    if (reason === undefined && isFailing) log.info(`${what} are saved again`);
    isFailing = reason !== undefined;
  }

  const stopFlushing = repeat(flush, flushInterval);
  return {
    /** `since`: since when the mode in which the comparison was made has been in force. */
    compared: (organizationId: string, since: number, comparison: Comparison): void => {
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
    /** Whether the two agree about a key, by the status with which the legacy service answered its request. */
    judgedKey: (
      { organizationId, sha256, userAgent }: Pick<Credentials, 'organizationId' | 'sha256' | 'userAgent'>,
      status: number,
      here: string,
    ): KeyFinding | undefined => {
      const finding = judgeKey(status, here);
      if (finding === undefined) return undefined;
      const entry = JSON.stringify({ userAgent: (userAgent ?? '').slice(0, 200), at: Date.now() });
      setBounded(pendingOf(organizationId).keys, sha256, { finding, entry });
      return finding;
    },
    /** `number`: of the change; an adoption with a higher one has repaired the failure. */
    adoptionFailed: (organizationId: string, userId: string, number: number, reason: AdoptionFailure): void =>
      setBounded(pendingOf(organizationId).failed, userId, { number, reason }),
    /** `pendingMs`: for how long the change may still take effect in the legacy service. */
    gap: (organizationId: string, gap: Gap, pendingMs: number): void => {
      countUnsaved(organizationId, 1);
      note(organizationId, gap, { count: 1, first: Date.now(), pending: pendingMs });
    },
    hasUnsavedGaps: (): boolean => unsavedGaps.size > 0,
    /** Whether a gap of one more organization can be kept until the store is back. */
    hasRoomFor: (organizationId: string): boolean =>
      unsavedGaps.size < maxPending || unsavedGaps.has(organizationId),
    register,
    flush,
    close: async (): Promise<void> => {
      await stopFlushing();
      await flush();
    },
  };
}

function setBounded<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size < maxPending || map.has(key)) map.set(key, value);
}
