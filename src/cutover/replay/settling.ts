import type { Log } from '../../log.ts';
import type { Cutover } from '../switch/instance.ts';
import { isAnyKeyAccepted, type OpenKey } from './api-keys.ts';
import type { ApiKeyCipher } from './api-key-cipher.ts';
import type { Delivered, Delivery, DeliveryOptions } from './delivery/delivery.ts';
import type { KeyRefusal, ReplayQueue, UploadedFile } from './queue/queue.ts';
import { delayAfter, nextAfter, setAsideAfterMs } from './rules.ts';
import type { Throttle } from './throttle.ts';
import type { Entry, Refusal, Waiting } from './waiting.ts';

export interface SettlingOptions extends Pick<DeliveryOptions, 'legacy'> {
  queue: ReplayQueue;
  cipher: Pick<ApiKeyCipher, 'open'>;
  cutover: Pick<Cutover, 'id'>;
  log: Log;
  delivery: Delivery;
  throttle: Throttle;
  /** A monotonic clock, in ms. */
  now: () => number;
}

/** Decides what becomes of an organization's waiting changes: they are completed, held for a while, or set aside. */
export function createSettling(options: SettlingOptions, organizationId: string, waiting: Waiting) {
  const { queue, cipher, cutover, log, delivery, throttle, now } = options;
  const { timeoutMs } = options.legacy;
  /** Whether a change has failed since the last one that was replayed. */
  let isFailing = false;

  return { withoutKey, settle, hold, complete, setAside };

  /** For a change that cannot be sent: each of its user's API keys was refused, or cannot be decrypted. */
  async function withoutKey(entry: Entry): Promise<void> {
    const refusals = [...entry.refusals.values()];
    const last = refusals.at(-1);
    if (last !== undefined) {
      entry.refusals.clear();
      const isSuspect = await areRefusedForGood(refusals);
      const reason =
        'its API key was refused for ten minutes, while other keys of the organization were accepted';
      await holdOrSetAside(entry, delayAfter(entry.sent), isSuspect, last, reason);
    } else if (entry.queued.sealedKey === '') {
      await setAside(entry, 0, 'its API key is no longer stored');
    } else {
      const reason = `API key was encrypted under a REPLAY_SECRET that instance ${cutover.id} does not have`;
      // A change may have been set aside for so long that no instance has the secret any more.
      if (entry.queued.isRetry) return await setAside(entry, 0, `its ${reason}`);
      const remedy =
        'restart it with that of the other instances, and the one used before as REPLAY_SECRET_PREVIOUS';
      throttle.pause(`an ${reason}: ${remedy}`, true);
    }
  }

  /** Whether keys have been refused for long, while the legacy service accepted others of the organization. */
  async function areRefusedForGood(refusals: readonly KeyRefusal[]): Promise<boolean> {
    if (refusals.some(({ forMs }) => forMs < setAsideAfterMs)) return false;
    if (refusals.every(({ isOtherAccepted }) => isOtherAccepted)) return true;
    // Nothing else may have been sent meanwhile, since everything may be waiting for this change.
    const isAccepted = await isAnyKeyAccepted(cipher, waiting.changes(), delivery);
    if (isAccepted) throttle.noteAnswer();
    return isAccepted;
  }

  /**
   * Sets a change aside that seems to be at fault itself (`isSuspect`) for the second time; otherwise it is sent again.
   * The first time, the legacy service may have recovered since the change failed.
   */
  async function holdOrSetAside(
    entry: Entry,
    ms: number,
    isSuspect: boolean,
    { status, code }: Refusal,
    reason: string,
  ): Promise<void> {
    const isAgain = isSuspect && entry.isSuspect;
    entry.isSuspect = isSuspect;
    if (!isAgain) return hold(entry, ms);
    await setAside(entry, status, code === undefined ? reason : `${code}: ${reason}`);
  }

  /** For a change that was sent with `key`. `hasOlder`: whether an older one waited when it was sent. */
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
    entry.answer = `${status === 0 ? 'no response' : status}${remark === undefined ? '' : ` (${remark})`}`;
    if (next.kind === 'pause') {
      const which = outcome.kind === 'answered' ? ` (change ${id} of organization ${organizationId})` : '';
      return throttle.pause(next.reason + which);
    }
    const refusal = { status, code: remark };
    if (next.kind === 'other-key') return await noteKeyRefused(entry, key, refusal);
    if (outcome.kind === 'answered') throttle.noteAnswer();
    if (next.kind === 'done' && remark === undefined) {
      return await complete(entry, key.keyId, uploaded);
    }
    if (next.kind === 'done' || next.kind === 'aside') {
      return await setAside(entry, status, remark ?? 'the legacy service refused it');
    }
    if (entry.failingSince === undefined) reportWaiting(entry, refusal);
    entry.failingSince ??= now();
    const failedForLong = now() - entry.failingSince >= setAsideAfterMs;
    const isSuspect = failedForLong && (await delivery.probe(queued, key.apiKey));
    const reason = 'it failed for ten minutes, while other requests with the same key succeeded';
    await holdOrSetAside(entry, next.afterMs, isSuspect, refusal, reason);
  }

  /** Notes that a key was refused: the change is sent with another one of its user, if there is one. */
  async function noteKeyRefused(entry: Entry, { keyId }: OpenKey, refusal: Refusal): Promise<void> {
    if (entry.refusals.size === 0) reportWaiting(entry, refusal);
    const refused = await queue.refuse(organizationId, keyId);
    entry.refusals.set(keyId, { ...refused, ...refusal });
    throttle.noteRefusal(keyId, organizationId);
  }

  /** Logs why a change waits; not each one, since thousands do while the legacy service is out of order. */
  function reportWaiting({ id }: Entry, { status, code }: Refusal): void {
    if (isFailing) return;
    isFailing = true;
    const why = 'a change is waiting because the legacy service does not accept it';
    log.warn(why, { organizationId, id, status, code });
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
}
