import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import { storeTime, type RedisClient } from '../../redis/connection/client.ts';
import { dayOf } from '../../lib/days.ts';
import type { Interval } from '../../lib/iso8601.ts';
import { repeat } from '../../lib/repeat.ts';
import { createStoreClock } from './clock.ts';
import { defaultFlushMs, readCoveredUntil, writeCoverage, writeLost } from './coverage.ts';
import { activeOrganizationsKey, ledgerDays } from './keys.ts';
import { createTally, type Call } from './tally.ts';
import { createUsageWriter, type Outbox } from './usage-writer.ts';

export interface LedgerOptions {
  log: Log;
  /** Instead of the clock of Redis, in ms. */
  now?: () => number;
  flushMs?: number;
  closeMs?: number;
}

/** Counts the contract's calls for one process, and writes them to Redis every few seconds. */
export function createLedger(store: RedisClient, prefix: string, options: LedgerOptions) {
  const { log, flushMs = defaultFlushMs, closeMs = 2000 } = options;
  const clock = createStoreClock(store);
  const now = options.now ?? clock.now;
  const newId = (): string => randomBytes(6).toString('hex');
  const writer = createUsageWriter(store, prefix, newId());
  /** Under what coverage is recorded. */
  let instance = newId();
  const tally = createTally(writer.isKnown);
  let start = now();
  let outbox: Outbox | undefined;
  let writtenUntil = start;
  let hasTrouble = false;
  let isAdjusted = false;
  let hasRecorded = false;
  /** Found, and not yet recorded. */
  const lostTimes: Interval[] = [];

  const adjustClock = async (): Promise<void> => {
    if (options.now !== undefined) return;
    const ms = await clock.adjust();
    if (isAdjusted) return;
    // It was started by the clock of its machine.
    start += ms;
    writtenUntil += ms;
    isAdjusted = true;
  };

  const recordCoverage = async (until: number, closed: boolean): Promise<void> => {
    const isCoverageLost =
      hasRecorded && (await readCoveredUntil(store, prefix, instance, writtenUntil)) < writtenUntil;
    if (isCoverageLost || lostTimes.length > 0) {
      log.warn('Redis has lost data: calls may be missing from the usage ledger; coverage shows a gap');
    }
    if (lostTimes.length > 0) {
      await writeLost(store, prefix, newId(), {
        start: Math.min(...lostTimes.map((time) => time.start)),
        end: Math.max(...lostTimes.map((time) => time.end)),
      });
      lostTimes.length = 0;
    }
    if (isCoverageLost) {
      // As if this instance had died and another one had gone on: what is left of its record ends in a gap.
      const lost = { start: writtenUntil, since: writtenUntil, until: writtenUntil, closed: false };
      await writeCoverage(store, prefix, { ...lost, instance: newId() });
      instance = newId();
      start = writtenUntil;
    }
    // The clock may have been set back since.
    start = Math.min(start, until);
    await writeCoverage(store, prefix, { instance, start, since: writtenUntil, until, closed });
    if (writtenUntil === start || dayOf(until) > dayOf(writtenUntil)) {
      const today = dayOf(await storeTime(store));
      await store.zremrangebyscore(activeOrganizationsKey(prefix), '-inf', today - ledgerDays - 1);
    }
    writtenUntil = until;
    hasRecorded = true;
  };

  const writeAll = async (closed: boolean): Promise<void> => {
    for (;;) {
      const isRetry = outbox !== undefined;
      await adjustClock();
      outbox ??= { ...tally.take(), since: writtenUntil, until: now() };
      const lost = await writer.findLost(outbox.until);
      if (lost !== undefined) lostTimes.push(lost);
      await writer.write(outbox);
      await recordCoverage(outbox.until, closed && !isRetry);
      outbox = undefined;
      if (!isRetry) break;
    }
    if (closed) await writer.close();
  };

  const attempt = async (closed: boolean): Promise<void> => {
    try {
      await writeAll(closed);
      if (hasTrouble) log.info('the usage ledger can be written again');
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
