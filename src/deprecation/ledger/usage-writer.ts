import { dayMs, dayOf } from '../../lib/days.ts';
import { inBatches } from '../../lib/collections/batches.ts';
import { forEachConcurrently } from '../../lib/collections/for-each-concurrently.ts';
import { groupBy } from '../../lib/collections/group-by.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { organizationBase, organizationsKey } from '../../redis/keys.ts';
import { batchText, type Batch } from './batches.ts';
import { activeOrganizationsKey, lastBatchKey, ledgerDays, unknownOrganizationBase } from './keys.ts';
import { tallyLimits, type Counted, type KeyTally } from './tally.ts';

const recordUsage = script<
  [instance: string, sequence: number, retentionSeconds: number, agents: number, batch: string],
  'recorded' | 'already'
>('deprecation/record_usage');

/** Batches by their numbers, in order. */
type Batches = Map<number, Batch>;

/** Counts taken from the tally that are not completely in Redis yet. */
export interface Outbox extends Counted {
  /** When they were taken, in ms. */
  until: number;
  /** The batches left, by the organization's base. Cut once, so that a batch sent again is the same batch. */
  batches?: Map<string, Batches>;
}

/** Pairs of key and operation in one script call, so that it takes Redis a millisecond or two at most. */
const batchLimits = { length: { of: ([, { uses }]: [string, KeyTally]) => uses.size, most: 150 } };

/** Organizations written to at once: few, so that requests are served in between. */
const concurrent = 4;

/** Writes the counts of one instance to Redis, each exactly once. */
export function createUsageWriter(store: RedisClient, prefix: string, instance: string) {
  const known = new Set<string>();
  /** Organizations (by base) with the number of this instance's last batch in Redis. */
  const written = new Set<string>();
  let sequence = 0;

  /** Looks up which of the claimed organizations exist: no Redis keys are created for others. */
  async function findKnown({ organizations }: Counted): Promise<void> {
    const claimed: string[] = [];
    for (const [organizationId, { isProven }] of organizations) {
      if (organizationId === undefined) continue;
      if (isProven) known.add(organizationId);
      else claimed.push(organizationId);
    }
    if (claimed.length === 0) return;
    const exist = await store.smismember(organizationsKey(prefix), claimed);
    for (const [i, organizationId] of claimed.entries()) if (exist[i] === 1) known.add(organizationId);
  }

  function cut({ organizations }: Counted): Map<string, Batches> {
    const byBase = groupBy([...organizations], ([id]) =>
      id !== undefined && known.has(id) ? organizationBase(prefix, id) : unknownOrganizationBase(prefix),
    );
    return new Map(
      Array.from(byBase, ([base, tallies]) => {
        const keyTallies = tallies.flatMap(([, { keys }]) => [...keys]);
        return [
          base,
          new Map(Array.from(inBatches(keyTallies, batchLimits), (batch) => [++sequence, batch])),
        ];
      }),
    );
  }

  /** In the order of their numbers: Redis ignores numbers up to the last one recorded. */
  async function send(base: string, batches: Batches): Promise<void> {
    for (const [number, batch] of batches) {
      await recordUsage(
        store,
        base,
        instance,
        number,
        (ledgerDays * dayMs) / 1000,
        tallyLimits.agents,
        // Made one at a time, so that requests are served in between.
        batchText(batch),
      );
      batches.delete(number);
      written.add(base);
    }
  }

  return {
    /** Whether a claimed organization is known to exist. */
    isKnown: (organizationId: string): boolean => known.has(organizationId),
    /** Writes what is left in the outbox. If it rejects, it is to be called again with the same outbox. */
    write: async (outbox: Outbox): Promise<void> => {
      if (outbox.batches === undefined) {
        await findKnown(outbox);
        outbox.batches = cut(outbox);
      }
      const day = dayOf(outbox.until);
      const active = [...outbox.organizations.keys()].filter((id) => id !== undefined && known.has(id));
      if (active.length > 0) {
        await store.zadd(activeOrganizationsKey(prefix), 'GT', ...active.flatMap((id) => [day, id ?? '']));
      }
      await forEachConcurrently(outbox.batches, concurrent, ([base, batches]) => send(base, batches));
    },
    /** Removes what tells a batch that is sent again from a new one. To be called once everything is written. */
    close: async (): Promise<void> => {
      await Promise.all([...written].map((base) => store.unlink(lastBatchKey(base, instance))));
    },
  };
}
