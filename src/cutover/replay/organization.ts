import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import type { Cutover } from '../switch/instance.ts';
import type { ReplayCredentials } from './credentials.ts';
import type { Delivered, Delivery, DeliveryOptions } from './delivery.ts';
import type { Throttle } from './throttle.ts';
import type { QueuedChange } from './queue/changes.ts';
import type { KeyRefusal, ReplayQueue, UploadedFile } from './queue/queue.ts';
import { firstKey, isAnyKeyAccepted, type OpenKey } from './api-keys.ts';
import { delayAfter, nextAfter, setAsideAfterMs } from './rules.ts';
import { createWaiting, type Entry, type WaitingOptions } from './waiting.ts';

export interface ReplayOptions extends Omit<DeliveryOptions, 'queue'> {
  queue: ReplayQueue;
  credentials: Pick<ReplayCredentials, 'open'>;
  cutover: Pick<Cutover, 'id' | 'mode'>;
  log: Log;
}

export interface ReplayContext extends ReplayOptions, Omit<WaitingOptions, 'queue'> {
  delivery: Delivery;
  throttle: Throttle;
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
  const { cutover, queue, delivery, credentials, throttle, log } = context;
  const { sender, maySend, signal, now } = context;
  const { timeoutMs } = context.legacy;
  const waiting = createWaiting(context, organizationId);
  /** Whether nothing waited in the last step. */
  let isIdle = false;
  /** Whether a change has failed since the last one that was replayed. */
  let isFailing = false;

  async function send(entry: Entry): Promise<void> {
    const { id, queued } = entry;
    // What is sent is the current state, which later changes in the queue may have produced.
    if (queued.isRetry && waiting.isConcernedLater(entry)) {
      await queue.retry(organizationId, id);
      return waiting.remove(entry);
    }
    // Any of the user's keys will do.
    const key = firstKey(credentials, waiting.ofSameUser(entry), entry.refusals);
    if (key === undefined) return await withoutKey(entry);
    const prepared = await delivery.prepare(queued, key.apiKey);
    if (prepared === 'nothing') return await complete(entry);
    if (prepared === 'picture-gone') return await setAside(entry, 0, 'its picture file is gone');
    // It may have been removed meanwhile, as by `cutover set native --force`.
    const marked = await queue.mark(organizationId, id, sender, entry.otherSender);
    if (marked === undefined) return waiting.remove(entry);
    if (marked !== sender) {
      entry.otherSender = marked;
      return hold(entry, 2 * timeoutMs);
    }
    if (!maySend()) return;
    entry.sent += 1;
    // Before it is sent: one that is made while the response is under way may have released the name too late.
    const hasOlder = waiting.hasOlder(entry);
    const delivered = await delivery.send(prepared);
    if (!context.hasLease() && delivered.outcome.kind !== 'unreachable') await repair(queued);
    await settle(entry, delivered, hasOlder, key);
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

  async function withoutKey(entry: Entry): Promise<void> {
    const refusals = [...entry.refusals.values()];
    const last = refusals.at(-1);
    if (last !== undefined) {
      if (isSuspectAgain(entry, await areRefusedForGood(refusals))) {
        const code = last.code === undefined ? '' : `${last.code}: `;
        const reason = `${code}its API key was refused for ten minutes, while keys of the organization were accepted`;
        return await setAside(entry, last.status, reason);
      }
      entry.refusals.clear();
      hold(entry, delayAfter(entry.sent));
    } else if (entry.queued.sealedKey === '') {
      await setAside(entry, 0, 'its API key is no longer stored');
    } else {
      throttle.pause(
        `an API key was encrypted under a REPLAY_SECRET that instance ${cutover.id} does not have: restart it with that of the other instances, and the one used before as REPLAY_SECRET_PREVIOUS`,
        true,
      );
    }
  }

  /** Whether keys have been refused for long, while the legacy service accepted others of the organization. */
  async function areRefusedForGood(refusals: readonly KeyRefusal[]): Promise<boolean> {
    if (refusals.some(({ forMs }) => forMs < setAsideAfterMs)) return false;
    if (refusals.every(({ isOtherAccepted }) => isOtherAccepted)) return true;
    // Nothing else may have been sent meanwhile, since everything may be waiting for this change.
    const isAccepted = await isAnyKeyAccepted(credentials, waiting.changes(), delivery);
    if (isAccepted) throttle.answered();
    return isAccepted;
  }

  /** Only the second time in a row: the first time, the legacy service may have recovered since the change failed. */
  function isSuspectAgain(entry: Entry, isSuspect: boolean): boolean {
    const isAgain = isSuspect && entry.isSuspect;
    entry.isSuspect = isSuspect;
    return isAgain;
  }

  async function settle(
    entry: Entry,
    { outcome, uploaded, remark }: Delivered,
    hasOlder: boolean,
    key: OpenKey,
  ): Promise<void> {
    const { id, queued, sent } = entry;
    const claimsName =
      queued.change.kind === 'put' && (queued.isRetry || queued.change.username !== undefined);
    const next = nextAfter(outcome, { sent, claimsName, hasOlder }, timeoutMs);
    const status = outcome.kind === 'answered' ? outcome.status : 0;
    if (next.kind === 'pause') {
      const which = outcome.kind === 'answered' ? ` (change ${id} of organization ${organizationId})` : '';
      return throttle.pause(next.reason + which);
    }
    if (next.kind === 'other-key') {
      if (entry.refusals.size === 0) reportWaiting(entry, status, remark);
      const refused = await queue.refuse(organizationId, key.keyId);
      entry.refusals.set(key.keyId, { ...refused, status, code: remark });
      return throttle.refused(key.keyId);
    }
    if (outcome.kind === 'answered') throttle.answered();
    if (next.kind === 'done' && remark === undefined) {
      return await complete(entry, key.keyId, uploaded);
    }
    if (next.kind === 'done' || next.kind === 'aside') {
      return await setAside(entry, status, remark ?? 'the legacy service refused it');
    }

    if (entry.failingSince === undefined) reportWaiting(entry, status, remark);
    entry.failingSince ??= now();
    const failedForLong = now() - entry.failingSince >= setAsideAfterMs;
    if (isSuspectAgain(entry, failedForLong && (await delivery.probe(queued, key.apiKey)))) {
      return await setAside(entry, status, remark ?? 'it failed for ten minutes, while reads succeeded');
    }
    hold(entry, next.afterMs);
  }

  /** Logs why a change waits; not each one, since thousands do while the legacy service is out of order. */
  function reportWaiting({ id }: Entry, status: number, code: string | undefined): void {
    if (isFailing) return;
    isFailing = true;
    log.warn('a change waits, since the legacy service does not take it', {
      organizationId,
      id,
      status,
      code,
    });
  }

  function hold(entry: Entry, ms: number): void {
    entry.notBefore = now() + ms;
  }

  async function complete(entry: Entry, acceptedKey?: string, uploaded?: UploadedFile): Promise<void> {
    await queue.complete(organizationId, entry.id, acceptedKey, uploaded);
    waiting.remove(entry);
    isFailing = false;
  }

  async function setAside(entry: Entry, status: number, reason: string): Promise<void> {
    const { id } = entry;
    await queue.setAside(organizationId, id, { status, reason });
    waiting.remove(entry);
    log.warn('a change could not be replayed to the legacy service', { organizationId, id, status, reason });
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
    announced: waiting.announced,
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
