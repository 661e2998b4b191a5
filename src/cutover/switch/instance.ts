import { setTimeout as sleep } from 'node:timers/promises';
import { ProblemError } from '../../contract/problems.ts';
import type { Log } from '../../log.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { cutoverKey } from '../../redis/keys.ts';
import { authorityOf, type Mode } from '../modes.ts';
import {
  acknowledges,
  follow,
  readLease,
  type Announcement,
  type SwitchPhase,
  type Position,
} from './protocol.ts';
import {
  newRegistration,
  removeEnded,
  toAnnouncement,
  cutoverHeartbeat,
  cutoverRemove,
  type HeartbeatReply,
  type Registration,
} from './registry.ts';

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

/** How often an instance reads the mode, in ms: normally, and during a switch. */
const interval = { usual: 500, switching: 50 };
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
  const key = cutoverKey(keyPrefix);
  const { id, registration } = newRegistration(options);

  await removeEnded(store, keyPrefix);
  let position = follow(await heartbeat(0, '-', true), 0);
  /** When the last heartbeat that was answered was sent. */
  let heardAt = performance.now();
  /** When this process last noticed that it runs, and that it had not run for a while. */
  let ranAt = heardAt;
  let resumedAt = -Infinity;
  let admitted = 0;
  let acknowledged: SwitchPhase | undefined;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let isUnsaved = (): boolean => false;
  const watching = setInterval(wasPaused, interval.usual).unref();
  plan();

  return {
    id,
    /** The mode in which reads are served. */
    mode: (): Mode => position.reads,
    /** Since when the stored mode has been in force, ms since 1970 by the store's clock; 0 if none was ever stored. */
    since: (): number => position.since,
    /**
     * The mode for a read that begins now. A promise only after a pause of this process, or if it has to be refused with
     * `store-unavailable`: while a switch is under way and the store has not been heard from for a while, or if the
     * authority is a legacy service that this process does not know.
     */
    readMode: (): Mode | Promise<Mode> =>
      wasPaused() || isLapsed() || !knowsAuthority() ? readLater() : position.reads,
    /**
     * Admits a change whose body has arrived and whose caller is known. A promise only while a switch is under way, or
     * if this process may have missed one; it rejects with `store-unavailable` after three seconds without the store,
     * or fifteen of a switch, or if the authority is a legacy service that this process does not know.
     */
    admitChange: (): Admission | Promise<Admission> => {
      const { changes } = position;
      // Where Redis is the authority, its scripts refuse a change that a switch has left behind.
      const isCurrent = changes !== undefined && (authorityOf(changes) === 'redis' || !isOutOfTouch());
      return isCurrent && knowsAuthority() ? admitNow(changes) : admitLater();
    },
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
      isClosed = true;
      clearTimeout(timer);
      clearInterval(watching);
      await running;
      const doubt = isUnsaved()
        ? `${id} stopped before it could record which changes may be missing here`
        : '';
      // Otherwise another instance, or the next switch, removes it.
      await cutoverRemove(store, key, id, doubt).catch(() => {});
    },
  };

  /** Sends a heartbeat; returns what the store says about the mode. */
  async function heartbeat(seen: number, phase = '-', isFirst = false): Promise<Announcement> {
    const own = JSON.stringify(registration);
    const reply = await cutoverHeartbeat(store, key, id, own, seen, phase, Number(isFirst));
    if (reply.kind !== 'ok') throw new Error(whyNotServing(reply));
    return toAnnouncement(reply);
  }

  async function beat(): Promise<void> {
    const sentAt = performance.now();
    acknowledged = acknowledges(position, unfinished());
    try {
      apply(follow(await heartbeat(position.epoch, acknowledged), position.epoch));
      heardAt = sentAt;
    } catch {
      // An unavailable store is reported elsewhere; the mode stays as it is.
    }
  }

  /** One heartbeat at a time; a caller that comes during one waits for the one after. */
  async function refresh(): Promise<void> {
    await running;
    running ??= beat().finally(() => {
      running = undefined;
      plan();
    });
    await running;
  }

  function plan(): void {
    if (isClosed) return;
    clearTimeout(timer);
    const isUrgent = position.phase !== undefined && acknowledges(position, unfinished()) !== acknowledged;
    const delay = isUrgent ? 0 : position.phase === undefined ? interval.usual : interval.switching;
    timer = setTimeout(() => void refresh(), delay);
    timer.unref();
  }

  function apply(next: Position): void {
    const before = position;
    position = next;
    if (next.isRegressed && !before.isRegressed) {
      log?.error(
        'the store has lost the last switch, as after a failover: changes are refused until admin cutover set chooses a mode again',
      );
    }
    if (next.reads !== before.reads) {
      log?.info('the mode has changed', { from: before.reads, to: next.reads });
      if (!knowsAuthority()) log?.error(whyNotServing({ kind: 'needs-legacy', mode: next.reads }));
      options.onMode?.(next.reads);
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
    if (admitted === 0 && position.phase !== undefined) plan();
  }

  async function admitLater(): Promise<Admission> {
    const since = performance.now();
    // While the store is away, what was last known of the mode holds.
    if (isOutOfTouch()) await Promise.race([catchUp(), sleep(maxWait.catchUp, undefined, { ref: false })]);
    while (position.changes === undefined) {
      const now = performance.now();
      const isHeld = position.phase !== undefined && now - heardAt < storeAway;
      if (now - since >= (isHeld ? maxWait.hold : maxWait.store)) {
        throw unavailable(
          'Changes are on hold for a moment; this one was not made. Sending it again is safe.',
        );
      }
      await sleep(waitInterval);
    }
    requireAuthority();
    return admitNow(position.changes);
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

  /** Whether reads may have moved without this process, in a switch that it takes part in. */
  function isLapsed(): boolean {
    return position.phase !== undefined && isOutOfTouch();
  }

  /** Asks the store for the mode: once, or after a pause until it has answered. */
  async function catchUp(): Promise<void> {
    await refresh();
    // Timers that are late after a pause may give up a connection, and with it the first heartbeats.
    while (wasPaused()) {
      await sleep(waitInterval);
      await refresh();
    }
  }

  async function readLater(): Promise<Mode> {
    await catchUp();
    if (isLapsed()) throw unavailable('The store could not be reached or did not answer in time.');
    requireAuthority();
    return position.reads;
  }

  /** Whether this process knows the service that is the authority. Only one that was paused over a switch may not. */
  function knowsAuthority(): boolean {
    return options.legacy || authorityOf(position.reads) === 'redis';
  }

  function requireAuthority(): void {
    if (knowsAuthority()) return;
    throw unavailable(
      'Another service has the data now, and this instance does not know its address. Sending the request again is safe.',
    );
  }
}

function unavailable(detail: string): ProblemError {
  return new ProblemError('store-unavailable', detail);
}

function whyNotServing(reply: Exclude<HeartbeatReply, { kind: 'ok' }>): string {
  switch (reply.kind) {
    case 'needs-replay':
      return 'the mode of the cut-over is reverse, in which every instance records changes for the legacy service: set REPLAY_SECRET to the same secret as the other instances';
    case 'needs-legacy':
      return `the mode of the cut-over is ${reply.mode}, which needs the legacy service: set LEGACY_BASE_URL to its address, or switch to native first (profile-bridge admin cutover set native)`;
    case 'native-instances':
      return `LEGACY_BASE_URL is set, but instances without it already serve from this store (${reply.ids.join(', ')}): stop them first, or run profile-bridge admin cutover set native to keep Redis the authority`;
  }
}
