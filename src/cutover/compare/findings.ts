import { setImmediate as nextPhase } from 'node:timers/promises';
import { repeat } from '../../lib/repeat.ts';
import type { Log } from '../../log.ts';
import { forwardedOrganizationsKey, organizationBase } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { organizationExists } from '../../redis/organizations.ts';
import { createPending, maxPending, type Gap, type Pending } from './pending.ts';

const recordComparisons = script<[since: number, findings: string], null>('cutover/record_comparisons');

export type Findings = ReturnType<typeof createFindings>;

const flushInterval = 1000;

/** Users and keys that one call of the script takes. */
const partSize = 200;

/** Collects what comparing finds, and saves it once a second: no request waits for it. */
export function createFindings(store: RedisClient, prefix: string, log: Log) {
  const { take, recordGap: keepGap, ...recorders } = createPending();
  /** How many gaps of each organization are not saved yet. */
  const unsavedGaps = new Map<string, number>();
  /** Whether the last flush could not save everything. */
  let isFailing = false;

  function countUnsaved(organizationId: string, more: number): void {
    const count = (unsavedGaps.get(organizationId) ?? 0) + more;
    if (count > 0) unsavedGaps.set(organizationId, count);
    else unsavedGaps.delete(organizationId);
  }

  /**
   * Puts an organization on the list of those whose requests are forwarded, each time something is recorded of it: Redis
   * may have lost the list. Only one that is listed counts as recorded.
   */
  async function register(organizationId: string): Promise<void> {
    await store.sadd(forwardedOrganizationsKey(prefix), organizationId);
  }

  async function save(organizationId: string, pending: Pending): Promise<void> {
    const { since, ...maps } = pending;
    const base = organizationBase(prefix, organizationId);
    // The legacy service may say 404 of an organization that it does not know: anybody could leave keys behind so.
    const doubtful = [...maps.keys].filter(
      ([, key]) => key.finding === 'unmapped' && key.entry.status === 404,
    );
    if (doubtful.length > 0 && !(await organizationExists(store, base)))
      for (const [sha256] of doubtful) maps.keys.delete(sha256);
    const longest = Math.max(...Object.values(maps).map(({ size }) => size));
    if (longest === 0) return;
    await register(organizationId);
    for (let at = 0; at === 0 || at < longest; at += partSize) {
      const parts = Object.entries(maps).map(
        ([name, map]) => [name, Object.fromEntries([...map].slice(at, at + partSize))] as const,
      );
      await recordComparisons(store, base, since, JSON.stringify(Object.fromEntries(parts)));
    }
  }

  async function flush(): Promise<void> {
    const saving = take();
    if (saving.size === 0) return;
    let reason: string | undefined;
    for (const [organizationId, pending] of saving) {
      try {
        await save(organizationId, pending);
        for (const { count } of pending.gaps.values()) countUnsaved(organizationId, -count);
      } catch (error) {
        // A gap is never dropped: it is kept until the store is back.
        for (const [gap, noted] of pending.gaps) keepGap(organizationId, gap, noted);
        reason ??= String(error);
        // A store that is away fails so fast that nothing else would get its turn.
        await nextPhase();
      }
    }
    const what = 'gaps and comparisons with the legacy service';
    if (reason !== undefined && !isFailing)
      log.warn(`${what} cannot be saved; the mode cannot be switched until the gaps have been saved`, {
        reason,
      });
    if (reason === undefined && isFailing) log.info(`${what} are saved again`);
    isFailing = reason !== undefined;
  }

  const stopFlushing = repeat(flush, flushInterval);
  return {
    ...recorders,
    /** `pendingMs`: for how long the change may still take effect in the legacy service. */
    recordGap: (organizationId: string, gap: Gap, pendingMs: number): void => {
      countUnsaved(organizationId, 1);
      keepGap(organizationId, gap, { count: 1, first: Date.now(), pending: pendingMs });
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
