import type { Mode } from '../modes.ts';

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
  /** Whether the store has returned to an earlier state, as after a failover. */
  isRegressed: boolean;
}

/** The position of an instance that has seen the epoch `seen`, after an announcement. */
export function follow({ mode, epoch, since, underWay }: Announcement, seen: number): Position {
  const isRegressed = epoch < seen;
  const reads = underWay?.phase === 'reads' ? underWay.to : mode;
  return {
    reads,
    changes: underWay === undefined && !isRegressed ? mode : undefined,
    epoch: Math.max(epoch, seen),
    since,
    phase: isRegressed ? undefined : underWay?.phase,
    isRegressed,
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
 * How long an instance may serve reads by what it last heard during a switch, in ms: half of `silent_after` in
 * lua/lib/cutover.lua.
 */
export const readLease = 2000;
