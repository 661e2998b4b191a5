import { setTimeout as sleep } from 'node:timers/promises';
import { firstKey } from './api-keys.ts';
import type { QueuedChange } from './queue/changes.ts';
import { delayAfter } from './rules.ts';
import { createSettling, type SettlingOptions } from './settling.ts';
import { createWaiting, type Entry, type WaitingOptions } from './waiting.ts';

export interface ReplayContext extends SettlingOptions, Omit<WaitingOptions, 'queue'> {
  /** What changes are marked with: a different one for each lease. */
  sender: string;
  maySend: () => boolean;
  /** Aborted when the service stops. */
  signal: AbortSignal;
  /** Whether no other instance can have begun to replay. */
  hasLease: () => boolean;
  onProgress: () => void;
}

/** How often to try to queue a change again, in ms. */
const repairInterval = 1000;

/** The replay of one organization's changes, while this instance has the lease. */
export function replayOrganization(context: ReplayContext, organizationId: string) {
  const { queue, delivery, cipher, throttle, log, sender, maySend, signal } = context;
  const { timeoutMs } = context.legacy;
  const waiting = createWaiting(context, organizationId);
  const { withoutKey, settle, hold, complete, setAside } = createSettling(context, organizationId, waiting);
  /** Whether nothing waited in the last step. */
  let isIdle = false;

  async function send(entry: Entry): Promise<void> {
    const { id, queued } = entry;
    // What is sent is the current state, which later changes in the queue may have produced.
    if (queued.isRetry && waiting.isConcernedLater(entry)) {
      await queue.retry(organizationId, id);
      return waiting.remove(entry);
    }
    // Any of the user's keys will do.
    const key = firstKey(cipher, waiting.ofSameUser(entry), entry.refusals);
    if (key === undefined) return await withoutKey(entry);
    const prepared = await delivery.prepare(queued, key.apiKey);
    if (prepared === 'nothing') return await complete(entry);
    if (prepared === 'picture-gone') return await setAside(entry, 0, 'its picture file is gone');
    // It may have been removed meanwhile, as by `cutover set native --force`.
    const marked = await queue.mark(organizationId, id, sender, entry.otherSender, entry.answer);
    if (marked === undefined) return waiting.remove(entry);
    if (marked !== sender) {
      entry.otherSender = marked;
      return hold(entry, 2 * timeoutMs);
    }
    if (!maySend()) return;
    entry.sent += 1;
    // Before it is sent: one that is made while the response is under way may have released the name too late.
    const hasOlder = waiting.hasOlder(entry);
    const delivered = await delivery.send(prepared, maySend);
    if (!context.hasLease() && delivered?.outcome.kind !== 'unreachable') await repair(queued);
    if (delivered !== undefined) await settle(entry, delivered, hasOlder, key);
  }

  /** The process was held up: what it sent may have come after what another instance sent since. */
  async function repair(queued: QueuedChange): Promise<void> {
    for (;;) {
      try {
        return await queue.sendAgain(queued, sender);
      } catch (error) {
        if (signal.aborted) throw error;
        // The store is unavailable, which is reported elsewhere.
        await sleep(repairInterval);
      }
    }
  }

  function begin(entry: Entry): void {
    entry.isUnderWay = true;
    const request = send(entry).catch((error: unknown) => {
      // Redis or the picture store is unavailable. If the change was sent, sending it again is harmless.
      hold(entry, Math.max(delayAfter(entry.sent + 1), entry.sent > 0 ? 2 * timeoutMs : 0));
      log.warn('replaying a change failed', { organizationId, id: entry.id, reason: String(error) });
    });
    throttle.count(request);
    void request.finally(() => {
      entry.isUnderWay = false;
      context.onProgress();
    });
  }

  return {
    noteToken: waiting.noteToken,
    /** Reads new changes, and starts to send those that may be sent; returns how many requests were started. */
    step: async (): Promise<number> => {
      await waiting.readNew();
      const some = waiting.sendable(throttle.free());
      for (const entry of some) begin(entry);
      isIdle = waiting.isEmpty();
      return some.length;
    },
    isIdle: (): boolean => isIdle,
  };
}
