import { setTimeout as sleep } from 'node:timers/promises';
import { ProblemError } from '../../contract/problems.ts';
import type { Log } from '../../log.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { cutoverKey } from '../../redis/keys.ts';
import { authorityOf, type Mode } from '../modes.ts';
import { needsLegacy, startHeartbeats } from './heartbeats.ts';
import { readLease, type Position } from './protocol.ts';
import { cutoverRemove, newRegistration, removeEnded, type Registration } from './registry.ts';

/** A change that the service has accepted to make. */
export interface Admission {
  /** The mode under which it is made, whatever the mode becomes meanwhile. */
  readonly mode: Mode;
  /** The epoch that every script of the change is given: Redis refuses those of an outdated instance. */
  readonly epoch: number;
  /** To be called once, when everything that belongs to the change has ended. */
  release: () => void;
}

/** This process as a participant in the cut-over. */
export type Cutover = Awaited<ReturnType<typeof joinCutover>>;

export interface CutoverOptions extends Pick<Registration, 'kind' | 'legacy' | 'replay'> {
  keyPrefix: string;
  log?: Log;
  onMode?: (mode: Mode) => void;
}

/** How often this process checks that it was not paused, in ms. */
const pauseInterval = 500;
/** How often a waiting change checks whether it may go on, in ms. */
const waitInterval = 20;
/**
 * How long a change waits for a store that is away, for a switch, even one withdrawn late, and to learn of a switch that
 * this process may have missed, in ms.
 */
const maxWait = { store: 3000, hold: 15_000, catchUp: 1000 };
/** After how long without a heartbeat the store counts as unavailable for waiting changes, in ms. */
const storeAway = 1000;

/**
 * Registers this process, and follows the mode. Rejects with an Error of one line if it must not serve in that mode.
 */
export async function joinCutover(store: RedisClient, options: CutoverOptions) {
  const { keyPrefix, log } = options;
  const { id, registration } = newRegistration(options);
  let admitted = 0;
  let isUnsaved = (): boolean => false;

  await removeEnded(store, keyPrefix);
  const heartbeats = await startHeartbeats(store, {
    keyPrefix,
    id,
    registration,
    unfinished,
    isUnsaved: () => isUnsaved(),
    onAnswer,
  });
  let position = heartbeats.first;
  /** When the last heartbeat that was answered was sent. */
  let heardAt = performance.now();
  /** When this process last noticed that it runs, and that it had not run for a while. */
  let ranAt = heardAt;
  let resumedAt = -Infinity;
  const watching = setInterval(wasPaused, pauseInterval).unref();
  reportLoss({ ...position, isRegressed: false, isLost: false }, position);

  return {
    id,
    /** The mode in which reads are served. */
    mode: (): Mode => position.reads,
    /** Since when the stored mode has been in force, ms since 1970 by the store's clock; 0 if none was ever stored. */
    since: (): number => position.since,
    /**
     * The mode for a read that begins now. A promise only after a pause of this process, or if it has to be refused with
     * `store-unavailable`: while a switch is under way and the store has not been heard from for a while, or if this
     * process does not know the authority.
     */
    readMode: (): Mode | Promise<Mode> =>
      wasPaused() || isLapsed() || !knowsAuthority() ? readLater() : position.reads,
    /**
     * Admits a change whose body has arrived and whose caller is known. A promise only while a switch is under way, or
     * if this process may have missed one; it rejects with `store-unavailable` after three seconds without the store,
     * or fifteen of a switch, or if this process does not know the authority.
     */
    admitChange: (): Admission | Promise<Admission> => {
      const { changes } = position;
      // Where Redis is the authority, its scripts refuse a change that a switch has left behind.
      const isCurrent = changes !== undefined && (authorityOf(changes) === 'redis' || !isOutOfTouch());
      return isCurrent && knowsAuthority() ? admitNow(changes) : admitLater();
    },
    /** Whether changes may be replayed. Not once Redis has lost a switch: the legacy service may be the authority. */
    mayReplay: (): boolean => position.reads === 'reverse' && !position.isRegressed && !position.isLost,
    /** Whether Redis has lost the last switch, as in a failover; then changes get 503 until the mode is set again. */
    hasLostSwitch: (): boolean => position.isRegressed,
    /** Whether it is known which service is the authority, and how to reach it; otherwise requests get 503. */
    knowsAuthority,
    /** Whether every request is forwarded, whatever the store does. */
    forwardsAll: (): boolean =>
      position.changes !== undefined && authorityOf(position.changes) === 'legacy' && knowsAuthority(),
    /**
     * Whether a switch has gone on without this process, as while it was paused: then the change must not be
     * acknowledged. Asks the store only if it has not been heard from for a while.
     */
    isLeftBehind: async (of: Pick<Admission, 'mode' | 'epoch'>): Promise<boolean> => {
      if (isOutOfTouch()) await catchUp();
      const { epoch, phase, reads } = position;
      // A switch that this process takes part in waits for its admitted changes before it moves reads.
      return epoch > of.epoch && phase !== 'stop' && reads !== of.mode;
    },
    /**
     * As long as this is true, the instance does not acknowledge that its changes have stopped, and its end leaves a gap.
     * One at a time.
     */
    holdWhile: (condition: () => boolean): void => {
      isUnsaved = condition;
    },
    /** Ends the registration; requests must have ended. */
    close: async (): Promise<void> => {
      clearInterval(watching);
      await heartbeats.stop();
      const doubt = isUnsaved()
        ? `${id} stopped before it could record which changes may be missing here`
        : '';
      // Otherwise another instance, or the next switch, removes it.
      await cutoverRemove(store, cutoverKey(keyPrefix), id, doubt).catch(() => {});
    },
  };

  function onAnswer(next: Position, sentAt: number): void {
    const before = position;
    position = next;
    heardAt = sentAt;
    reportLoss(before, next);
    if (next.reads !== before.reads && !next.isLost) {
      log?.info('the mode has changed', { from: before.reads, to: next.reads });
      if (!knowsAuthority()) log?.error(needsLegacy(next.reads));
      options.onMode?.(next.reads);
    }
  }

  /** Says so if Redis turns out to have lost the last switch, or the mode. */
  function reportLoss(before: Position, next: Position): void {
    if (next.isRegressed && !before.isRegressed) {
      log?.error(
        'the store has lost the last switch, as after a failover: changes are refused until admin cutover set chooses a mode again',
      );
    }
    if (next.isLost) {
      if (!before.isLost) log?.error(`${lostMode}: requests are refused until admin cutover set chooses one`);
    } else if (
      before.phase === undefined &&
      next.reads === 'shadow' &&
      // A switch is heard of, with its epoch, before it changes `since`.
      next.epoch === before.epoch &&
      next.since > before.since
    ) {
      log?.error(`${lostMode}: it is shadow now, and the legacy service goes on as the authority`);
    }
  }

  /** How many changes have not ended; those that have yet to be recorded as gaps count as one. */
  function unfinished(): number {
    return admitted + Number(isUnsaved());
  }

  function admitNow(mode: Mode): Admission {
    admitted += 1;
    return { mode, epoch: position.epoch, release };
  }

  function release(): void {
    admitted -= 1;
    if (admitted === 0 && position.phase !== undefined) heartbeats.plan();
  }

  async function admitLater(): Promise<Admission> {
    const since = performance.now();
    // While the store is away, what was last known of the mode holds.
    if (isOutOfTouch()) await Promise.race([catchUp(), sleep(maxWait.catchUp, undefined, { ref: false })]);
    for (;;) {
      requireAuthority();
      const { changes, phase } = position;
      if (changes !== undefined) return admitNow(changes);
      const isHeld = phase !== undefined && performance.now() - heardAt < storeAway;
      if (performance.now() - since >= (isHeld ? maxWait.hold : maxWait.store)) {
        throw unavailable(
          'Changes are on hold for a moment; this one was not made. Sending it again is safe.',
        );
      }
      await sleep(waitInterval);
    }
  }

  /**
   * Whether this process was paused, and has not learned the mode since: a switch may have been made without it. False
   * in any case after a while: without the store, what was last known of the mode holds.
   */
  function wasPaused(): boolean {
    const now = performance.now();
    if (now - ranAt > readLease) resumedAt = now;
    ranAt = now;
    return heardAt < resumedAt && now - resumedAt < maxWait.catchUp;
  }

  /** As after a pause, or while the store is away. */
  function isOutOfTouch(): boolean {
    return performance.now() - heardAt > readLease;
  }

  /** Asks the store for the mode: once, or after a pause until it has answered. */
  async function catchUp(): Promise<void> {
    await heartbeats.refresh();
    // Timers that are late after a pause may give up a connection, and with it the first heartbeats.
    while (wasPaused()) {
      await sleep(waitInterval);
      await heartbeats.refresh();
    }
  }

  /** Whether reads may have moved without this process, in a switch that it takes part in. */
  function isLapsed(): boolean {
    return position.phase !== undefined && isOutOfTouch();
  }

  async function readLater(): Promise<Mode> {
    await catchUp();
    if (isLapsed()) throw unavailable('The store could not be reached or did not answer in time.');
    requireAuthority();
    return position.reads;
  }

  /**
   * Whether this process knows the service that is the authority. One that was paused over a switch may not, and none
   * does once Redis has lost the mode while it was the authority itself.
   */
  function knowsAuthority(): boolean {
    return !position.isLost && (options.legacy || authorityOf(position.reads) === 'redis');
  }

  function requireAuthority(): void {
    if (knowsAuthority()) return;
    throw unavailable(
      'It is not known which service has the data now, or how to reach it. Sending the request again is safe.',
    );
  }
}

const lostMode = 'Redis has lost the mode of the cut-over, as if it had come back without its data';

function unavailable(detail: string): ProblemError {
  return new ProblemError('store-unavailable', detail);
}
