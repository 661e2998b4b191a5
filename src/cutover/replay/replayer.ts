import { randomUUID } from 'node:crypto';
import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import { repeat } from '../../lib/repeat.ts';
import { compareAndSwap } from '../../redis/compare-and-swap.ts';
import { replayerKey, replayRestoreDueKey, replayPauseKey } from '../../redis/keys.ts';
import { stopTimeout } from '../forward/legacy.ts';
import { claimLease, type Lease } from '../lease.ts';
import type { Cutover } from '../switch/instance.ts';
import { createDelivery, type DeliveryOptions } from './delivery/delivery.ts';
import { createThrottle } from './throttle.ts';
import { replayOrganization } from './organization.ts';
import type { SettlingOptions } from './settling.ts';

export type Replayer = ReturnType<typeof startReplayer>;

export interface ReplayerOptions
  extends Omit<DeliveryOptions, 'queue'>, Pick<SettlingOptions, 'queue' | 'cipher' | 'log'> {
  cutover: Pick<Cutover, 'id' | 'mayReplay'>;
  /** A monotonic clock, in ms, by which changes are sent again or given up. */
  now?: () => number;
}

/** How often an instance checks whether something waits, in ms. */
const lookInterval = 500;
/** How often every organization is checked for waiting changes that are not on the list, by whichever instance, in ms. */
const restoreInterval = 30_000;
/** How often the replayer looks for new changes, in ms. */
const stepInterval = 50;
/** With each this many organizations in which changes wait, the replayer looks 1 ms later. */
const organizationsPerMs = 10;
/** The maximum of changes in memory, of one organization and in all: they take 1.5 KB each. */
const inMemory = { ofOne: 10_000, ofAll: 50_000 };
/** For how long a reason for a pause is shown: longer than the longest pause, in ms. */
const pauseShownMs = 180_000;

type OrganizationReplay = ReturnType<typeof replayOrganization>;

/** Replays waiting changes to the legacy service while the mode is reverse and no other instance does. */
export function startReplayer(options: ReplayerOptions) {
  const { store, keyPrefix, queue, cutover, legacy, log, now = () => performance.now() } = options;
  const delivery = createDelivery(options);
  const throttle = createThrottle(log, now, showPause);
  let isFailing = false;

  const stop = repeat(async (signal) => {
    if (!cutover.mayReplay() || throttle.isStuck()) return;
    try {
      const key = replayerKey(keyPrefix);
      if ((await store.exists(key)) === 1 || (await queue.listed()).length === 0) return;
      const lease = await claimLease(store, key, cutover.id);
      if (lease !== undefined) await replayUnder(lease, signal);
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.warn('replaying changes failed', { reason: String(error) });
      isFailing = true;
    }
  }, lookInterval);

  const stopRestoring = repeat(async () => {
    if (!cutover.mayReplay()) return;
    try {
      const holder = await compareAndSwap(
        store,
        replayRestoreDueKey(keyPrefix),
        '',
        cutover.id,
        restoreInterval,
      );
      if (holder === '') await queue.restoreList();
    } catch {
      // While a part of the store is away, not all can be asked.
    }
  }, restoreInterval / 10);

  /**
   * Replays until nothing waits, the lease is lost, the mode is or may be another one, or this instance keeps failing
   * where another might not, such as if it cannot reach the legacy service.
   */
  async function replayUnder(lease: Lease, signal: AbortSignal): Promise<void> {
    throttle.takeOver();
    let wake = (): void => {};
    const organizations = new Map<string, OrganizationReplay>();
    const maySend = (): boolean => lease.isHeld() && cutover.mayReplay() && !signal.aborted;
    const context = {
      ...options,
      delivery,
      throttle,
      sender: `${cutover.id}/${randomUUID()}`,
      maySend,
      signal,
      hasLease: lease.isHeld,
      maxInMemory: () => Math.ceil(Math.min(inMemory.ofOne, inMemory.ofAll / organizations.size)),
      now,
      onProgress: () => wake(),
    };
    let lookedAt = -Infinity;
    try {
      while (maySend() && !throttle.isStuck()) {
        if (performance.now() - lookedAt >= stepInterval + organizations.size / organizationsPerMs) {
          const found = await lookAround(organizations, (id) => replayOrganization(context, id));
          if (found === 0) return;
          lookedAt = performance.now();
        }
        if (await stepAll(organizations)) continue;
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, stepInterval);
        });
      }
    } finally {
      await throttle.untilSettled();
      await lease.release();
    }
  }

  /** Starts what may be sent; returns whether that is anything. Those that have sent something come last next time. */
  async function stepAll(organizations: Map<string, OrganizationReplay>): Promise<boolean> {
    const begun: [id: string, one: OrganizationReplay][] = [];
    for (const [id, one] of organizations) if ((await one.step()) > 0) begun.push([id, one]);
    for (const [id, one] of begun) {
      organizations.delete(id);
      organizations.set(id, one);
    }
    return begun.length > 0;
  }

  /**
   * Opens the organizations on the list, and closes those in which nothing waits any more; returns how many there are.
   * Not as soon as the last change has been sent: another one may come, and to begin a replay takes some time.
   */
  async function lookAround(
    organizations: Map<string, OrganizationReplay>,
    open: (organizationId: string) => OrganizationReplay,
  ): Promise<number> {
    for (const [id, one] of organizations) {
      if (!one.isIdle()) continue;
      await queue.unlist(id);
      // What was queued meanwhile, or was not read, is read again.
      organizations.delete(id);
    }
    for (const [id, token] of await queue.listed()) {
      const one = getOrInsert(organizations, id, () => open(id));
      one.noteToken(token);
    }
    return organizations.size;
  }

  /** For `cutover status`; the log has it as well. */
  function showPause(reason: string | undefined): void {
    const key = replayPauseKey(keyPrefix);
    const shown: Promise<unknown> =
      reason === undefined ? store.del(key) : store.set(key, reason, 'PX', pauseShownMs);
    shown.catch(() => {});
  }

  return {
    /** Waits a moment for the requests in progress, and lets another instance take over at once. */
    close: async (): Promise<void> => {
      const late = setTimeout(() => void legacy.close(), stopTimeout);
      await Promise.all([stop(), stopRestoring()]);
      clearTimeout(late);
    },
  };
}
