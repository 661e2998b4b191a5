import { authorityOf, type Authority, type Mode } from '../modes.ts';

/*
 * What an instance does about a switch, as pure functions; lua/lib/cutover.lua has the store's side, and coordinator.ts
 * that of the tool. test/cutover/switch/ explores every interleaving of the three.
 */

/** The phases of a switch that instances acknowledge (lua/lib/cutover.lua). */
export type SwitchPhase = 'stop' | 'reads' | 'back';

/** What the store says of the mode. */
export interface Announcement {
  mode: Mode;
  /** Rises with every switch that is begun. Redis refuses changes made under a lower one. */
  epoch: number;
  /** ms since 1970; 0 if no mode was ever stored. */
  since: number;
  /** Whether Redis has lost the mode, and may have been the authority. */
  isLost: boolean;
  /** Whether Redis has lost a switch that an instance has seen, as in a failover, and no mode has been set since. */
  hasLostSwitch: boolean;
  underWay?: { to: Mode; phase: SwitchPhase };
}

/** How an instance serves requests. */
export interface Position {
  /** The mode in which reads are served. */
  reads: Mode;
  /** The mode in which changes are admitted; undefined while they have to wait. */
  changes: Mode | undefined;
  epoch: number;
  /** When the stored mode came into force, ms since 1970. */
  since: number;
  /** The phase that the instance has to acknowledge. */
  phase: SwitchPhase | undefined;
  /** Whether the store has returned to an earlier state, as after a failover, and no mode has been set since. */
  isRegressed: boolean;
  /** Whether nobody knows the authority any more: then no request may be served. */
  isLost: boolean;
}

/** The position of an instance that has seen the epoch `seen`, after an announcement. */
export function follow(announcement: Announcement, seen: number): Position {
  const { mode, epoch, since, isLost, hasLostSwitch, underWay } = announcement;
  const isBehind = epoch < seen;
  const isRegressed = isBehind || hasLostSwitch;
  const haveReadsMoved = underWay?.phase === 'reads';
  return {
    reads: haveReadsMoved ? underWay.to : mode,
    changes: underWay === undefined && !isRegressed && !isLost ? mode : undefined,
    epoch: Math.max(epoch, seen),
    since,
    phase: isBehind ? undefined : underWay?.phase,
    isRegressed,
    isLost: isLost && !haveReadsMoved,
  };
}

/**
 * The phase that an instance may acknowledge. Except in a withdrawal all changes must have ended: one could still reach
 * the service that is no longer the authority.
 */
export function acknowledges({ phase }: Position, admitted: number): SwitchPhase | undefined {
  return phase === 'back' || admitted === 0 ? phase : undefined;
}

/**
 * The authority that an instance can vouch for should Redis lose the mode. Once reads have moved, the switch may have
 * been withdrawn without it.
 */
export function vouchedAuthority({ phase, reads }: Position): Authority {
  return phase === 'reads' ? 'redis' : authorityOf(reads);
}

/**
 * How long an instance may serve reads by what it last heard during a switch, in ms: half of `silent_after` in
 * lua/lib/cutover.lua.
 */
export const readLease = 2000;
