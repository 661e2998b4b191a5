import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import { replayLookKey, replayPauseKey } from '../../redis/keys.ts';
import type { Cutover } from '../switch/instance.ts';
import type { ReplayCredentials } from './credentials.ts';
import { createDelivery, type DeliveryOptions } from './delivery.ts';
import { createGate } from './gate.ts';
import { claimLease, leaseHolder, leaseMs, type ReplayerLease } from './lease.ts';
import { replayOrganization } from './organization.ts';
import type { ReplayQueue } from './queue/queue.ts';

/** Replays waiting changes to the legacy service while the mode is reverse and no other instance does. */
export interface Replayer {
  /** Waits for the requests in progress, and lets another instance take over at once. */
  close: () => Promise<void>;
}

export interface ReplayerOptions extends Omit<DeliveryOptions, 'queue'> {
  queue: ReplayQueue;
  credentials: Pick<ReplayCredentials, 'open'>;
  cutover: Pick<Cutover, 'id' | 'mode'>;
  log: Log;
  /** A monotonic clock, in ms, by which changes are sent again or given up. */
  now?: () => number;
}

/** How often an instance checks whether something waits, and the replayer in which organizations, in ms. */
const lookInterval = 500;
/** How often every organization is checked for waiting changes that are not on the list, in ms. */
const restoreInterval = 30_000;
/** How often the replayer looks for new changes where some were found before, in ms. */
const stepInterval = 50;
/** For how long a reason for a pause is shown: longer than the longest pause, in ms. */
const pauseShownMs = 180_000;

type OrganizationReplay = ReturnType<typeof replayOrganization>;

export function startReplayer(options: ReplayerOptions): Replayer {
  const { store, keyPrefix, queue, cutover, legacy, log, now = () => performance.now() } = options;
  const delivery = createDelivery(options);
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    let isFailing = false;
    while (!signal.aborted) {
      await sleep(lookInterval, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted || cutover.mode() !== 'reverse') continue;
      try {
        if ((await leaseHolder(store, keyPrefix)) !== undefined || !(await isAnyWaiting())) continue;
        const lease = await claimLease(store, keyPrefix, cutover.id);
        if (lease !== undefined) await replayUnder(lease);
        isFailing = false;
      } catch (error) {
        if (!isFailing) log.warn('replaying changes failed', { reason: String(error) });
        isFailing = true;
      }
    }
  }

  async function isAnyWaiting(): Promise<boolean> {
    await restoreListWhenDue();
    return (await queue.listed()).length > 0;
  }

  /** One instance at a time. */
  async function restoreListWhenDue(): Promise<void> {
    const isDue = await store.set(replayLookKey(keyPrefix), cutover.id, 'PX', restoreInterval, 'NX');
    if (isDue !== null) await queue.restoreList();
  }

  /** Replays until nothing waits, the lease is lost, or the mode is another one. */
  async function replayUnder(lease: ReplayerLease): Promise<void> {
    const renewing = setInterval(() => {
      // While Redis is away, the lease holds as long as it did before.
      lease.renew().catch(() => {});
    }, leaseMs / 5);
    const gate = createGate(log, now, (reason) => void showPause(reason));
    let wake = (): void => {};
    const maySend = (): boolean => lease.isHeld() && cutover.mode() === 'reverse' && !signal.aborted;
    const context = {
      ...options,
      delivery,
      gate,
      timeoutMs: legacy.timeoutMs,
      sender: `${cutover.id}/${randomUUID()}`,
      maySend,
      hasLease: lease.isHeld,
      now,
      onProgress: () => wake(),
    };
    const organizations = new Map<string, OrganizationReplay>();
    let lookedAt = -Infinity;
    try {
      while (maySend()) {
        if (performance.now() - lookedAt >= lookInterval) {
          const found = await lookAround(organizations, (id) => replayOrganization(context, id));
          if (found === 0) return;
          lookedAt = performance.now();
        }
        let begun = 0;
        for (const one of organizations.values()) begun += await one.step();
        if (begun > 0) continue;
        const isDone = [...organizations.values()].every((one) => one.waiting() === 0);
        if (isDone) lookedAt = -Infinity;
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, stepInterval);
        });
      }
    } finally {
      await Promise.all([...organizations.values()].map((one) => one.settled()));
      clearInterval(renewing);
      await lease.release();
    }
  }

  /**
   * Opens the organizations on the list, and closes those in which nothing waits any more; returns how many there are.
   */
  async function lookAround(
    organizations: Map<string, OrganizationReplay>,
    open: (organizationId: string) => OrganizationReplay,
  ): Promise<number> {
    await restoreListWhenDue();
    for (const [id, one] of organizations) {
      if (one.waiting() > 0) continue;
      await one.settled();
      await queue.close(id);
      // What was queued meanwhile, or was not read, is read again.
      organizations.delete(id);
    }
    for (const id of await queue.listed()) if (!organizations.has(id)) organizations.set(id, open(id));
    return organizations.size;
  }

  /** For `cutover status`. */
  async function showPause(reason: string | undefined): Promise<void> {
    const key = replayPauseKey(keyPrefix);
    try {
      if (reason === undefined) await store.del(key);
      else await store.set(key, reason, 'PX', pauseShownMs);
    } catch {
      // The log has it as well.
    }
  }

  const running = run();
  return {
    close: async () => {
      stopping.abort();
      await running;
    },
  };
}
