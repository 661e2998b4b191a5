import { dayMs, dayOf } from '../../lib/days.ts';
import { inBatches } from '../../lib/collections/batches.ts';
import { forEachConcurrently } from '../../lib/collections/for-each-concurrently.ts';
import { groupBy } from '../../lib/collections/group-by.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { gathererOf, script } from '../../redis/connection/script-loader.ts';
import { organizationBase, organizationsKey } from '../../redis/keys.ts';
import type { Interval } from '../../lib/iso8601.ts';
import { batchText, type Batch } from './batches.ts';
import { silenceMs } from './coverage.ts';
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
  /** When they, and those before them, were taken, in ms. */
  since: number;
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
  /** Batches that Redis has confirmed shortly before, in order, with when their calls were answered. */
  let recent: (Interval & { base: string; number: number })[] = [];
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
  async function send(base: string, batches: Batches, { since, until }: Outbox): Promise<void> {
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
      recent.push({ base, number, start: since, end: until });
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
      await forEachConcurrently(outbox.batches, concurrent, ([base, batches]) => send(base, batches, outbox));
    },
    /**
     * From when to when (ms) there were calls that Redis had confirmed in the seconds before `now` and no longer has, as after
     * the failover of their shard. To be asked before each write, after which it would no longer show.
     */
    findLost: async (now: number): Promise<Interval | undefined> => {
      const gather = gathererOf(store);
      const marks = new Map<string, number>();
      await Promise.all(
        Array.from(new Set(recent.map(({ base }) => base)), async (base) => {
          gather();
          marks.set(base, Number(await store.get(lastBatchKey(base, instance))));
        }),
      );
      const isLost = ({ base, number }: (typeof recent)[number]) => number > (marks.get(base) ?? 0);
      const [first, last] = [recent.find(isLost), recent.findLast(isLost)];
      recent = recent.filter((batch) => batch.end > now - silenceMs && !isLost(batch));
      return first && last && { start: first.start, end: last.end };
    },
    /** Removes what tells a batch that is sent again from a new one. To be called once everything is written. */
    close: async (): Promise<void> => {
      await Promise.all([...written].map((base) => store.unlink(lastBatchKey(base, instance))));
    },
  };
}
