import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import { storeTime, type RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { organizationBase, organizationsKey } from '../../redis/keys.ts';
import { batchText, cutBatches, type Batch } from './batches.ts';
import { defaultFlushMs, writeCoverage } from './coverage.ts';
import { dayMs, dayOf } from '../../lib/days.ts';
import { activeOrganizationsKey, lastBatchKey, ledgerDays, unknownOrganizationBase } from './keys.ts';
import { forEachConcurrently } from '../../lib/collections/for-each-concurrently.ts';
import { groupBy } from '../../lib/collections/group-by.ts';
import { repeat } from '../../lib/repeat.ts';
import { createTally, tallyLimits, type Call, type Counted } from './tally.ts';

const recordUsage = script<
  [instance: string, sequence: number, retentionSeconds: number, agents: number, batch: string],
  'recorded' | 'already'
>('deprecation/record_usage');

export interface LedgerOptions {
  log: Log;
  /** ms */
  now?: () => number;
  flushMs?: number;
  closeMs?: number;
}

/** Batches by their numbers, in order. */
type Batches = Map<number, Batch>;

/** Counts taken from the tally that are not completely in Redis yet. */
interface Outbox extends Counted {
  until: number;
  /** The batches left, by the organization's base. Cut once, so that a batch sent again is the same batch. */
  batches?: Map<string, Batches>;
}

/** Organizations written to at once: few, so that requests are served in between. */
const concurrent = 4;

/** Counts the contract's calls for one process, and writes them to Redis every few seconds. */
export function createLedger(store: RedisClient, prefix: string, options: LedgerOptions) {
  const { log, now = Date.now, flushMs = defaultFlushMs, closeMs = 2000 } = options;
  const instance = randomBytes(6).toString('hex');
  let start = now();
  const known = new Set<string>();
  /** Organizations (by base) with the number of this instance's last batch in Redis. */
  const written = new Set<string>();
  const tally = createTally((organizationId) => known.has(organizationId));
  let outbox: Outbox | undefined;
  let sequence = 0;
  let writtenUntil = start;
  let hasTrouble = false;

  /** Looks up which of the claimed organizations exist: no Redis keys are created for others. */
  const findKnown = async ({ organizations }: Counted): Promise<void> => {
    const claimed: string[] = [];
    for (const [organizationId, { isProven }] of organizations) {
      if (organizationId === undefined) continue;
      if (isProven) known.add(organizationId);
      else claimed.push(organizationId);
    }
    if (claimed.length === 0) return;
    const exist = await store.smismember(organizationsKey(prefix), claimed);
    claimed.forEach((organizationId, i) => exist[i] === 1 && known.add(organizationId));
  };

  const cut = ({ organizations }: Counted): NonNullable<Outbox['batches']> => {
    const byBase = groupBy([...organizations], ([id]) =>
      id !== undefined && known.has(id) ? organizationBase(prefix, id) : unknownOrganizationBase(prefix),
    );
    return new Map(
      Array.from(byBase, ([base, tallies]) => {
        const batches = cutBatches(tallies.flatMap(([, { keys }]) => [...keys]));
        return [base, new Map(batches.map((batch) => [(sequence += 1), batch]))];
      }),
    );
  };

  /** In the order of their numbers: Redis ignores numbers up to the last one recorded. */
  const send = async (base: string, batches: Batches): Promise<void> => {
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
  };

  const sendAll = async (out: Outbox): Promise<void> => {
    if (out.batches === undefined) {
      await findKnown(out);
      out.batches = cut(out);
    }
    const day = dayOf(out.until);
    const active = [...out.organizations.keys()].filter((id) => id !== undefined && known.has(id));
    if (active.length > 0) {
      await store.zadd(activeOrganizationsKey(prefix), 'GT', ...active.flatMap((id) => [day, id ?? '']));
    }
    await forEachConcurrently(out.batches, concurrent, ([base, batches]) => send(base, batches));
  };

  const recordCoverage = async (until: number, closed: boolean): Promise<void> => {
    // The clock may have been set back since.
    start = Math.min(start, until);
    await writeCoverage(store, prefix, { instance, start, since: writtenUntil, until, closed });
    if (writtenUntil === start || dayOf(until) > dayOf(writtenUntil)) {
      const today = dayOf(await storeTime(store));
      await store.zremrangebyscore(activeOrganizationsKey(prefix), '-inf', today - ledgerDays - 1);
    }
    writtenUntil = until;
  };

  const writeAll = async (closed: boolean): Promise<void> => {
    for (;;) {
      const isRetry = outbox !== undefined;
      outbox ??= { ...tally.take(), until: now() };
      await sendAll(outbox);
      await recordCoverage(outbox.until, closed && !isRetry);
      outbox = undefined;
      if (!isRetry) break;
    }
    // A closed instance sends no batch again.
    if (closed) await Promise.all([...written].map((base) => store.unlink(lastBatchKey(base, instance))));
  };

  const attempt = async (closed: boolean): Promise<void> => {
    try {
      await writeAll(closed);
      if (hasTrouble) log.info('the usage ledger can be written again; no call was lost');
      hasTrouble = false;
    } catch (error) {
      if (!hasTrouble)
        log.warn('the usage ledger cannot be written; calls are still counted', { detail: String(error) });
      hasTrouble = true;
    }
  };
  // The first write is at once, so that an instance that dies within its first interval is known to have run.
  let writing = attempt(false);
  const flush = (closed = false): Promise<void> => (writing = writing.then(() => attempt(closed)));
  const stopFlushing = repeat(() => flush(), flushMs);

  return {
    /** Counts one answered call in memory, in well under a microsecond; never throws. */
    record: (call: Call): void => tally.record(call, now()),
    /** Writes what has been counted, or keeps it for the next time if Redis is unavailable; never throws. */
    flush: (): Promise<void> => flush(),
    /** Seconds since everything counted was last in Redis. */
    lagSeconds: (): number => Math.max(0, now() - writtenUntil) / 1000,
    /** Writes the rest and records that this instance was shut down in order; gives up after `closeMs`. */
    close: async (): Promise<void> => {
      const givenUp = setTimeout(closeMs, undefined, { ref: false });
      await Promise.race([stopFlushing().then(() => flush(true)), givenUp]);
      const left = tally.calls() + (outbox?.calls ?? 0);
      if (left > 0)
        log.error('calls were counted but could not be written; coverage shows a gap', { calls: left });
    },
  };
}
