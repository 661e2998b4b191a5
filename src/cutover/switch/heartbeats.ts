import type { RedisClient } from '../../redis/connection/client.ts';
import { cutoverKey } from '../../redis/keys.ts';
import type { Authority } from '../modes.ts';
import {
  acknowledges,
  follow,
  vouchedAuthority,
  type Announcement,
  type Position,
  type SwitchPhase,
} from './protocol.ts';
import { cutoverHeartbeat, toAnnouncement, type HeartbeatReply, type Registration } from './registry.ts';

export interface HeartbeatOptions {
  keyPrefix: string;
  id: string;
  registration: Registration;
  /** How many changes have to end before this process may acknowledge that its changes have stopped. */
  unfinished: () => number;
  /** Whether gaps among them cannot be recorded yet, as while Redis is full. */
  isUnsaved: () => boolean;
  /** Called for each answer but the first. `sentAt`: by the monotonic clock. */
  onAnswer: (position: Position, sentAt: number) => void;
}

/** How often an instance reads the mode, in ms: normally, and during a switch. */
const interval = { usual: 500, switching: 50 };

/**
 * Registers this process by a first heartbeat, and sends further ones until stopped: each reports the phase of a switch
 * that this process has acknowledged, and is answered by the mode. Rejects with an Error of one line if the process must
 * not serve in that mode.
 */
export async function startHeartbeats(store: RedisClient, options: HeartbeatOptions) {
  const { id, unfinished, isUnsaved, onAnswer } = options;
  const key = cutoverKey(options.keyPrefix);
  const registration = JSON.stringify(options.registration);

  const first = follow(await send({ epoch: 0, since: 0 }, '-', 'none'), 0);
  let position = first;
  let acknowledged: SwitchPhase | undefined;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  plan();

  return {
    /** What the first heartbeat was answered. */
    first,
    refresh,
    plan,
    /** Plans no further ones; resolves once the one in progress has ended. */
    stop: async (): Promise<void> => {
      isStopped = true;
      clearTimeout(timer);
      await running;
    },
  };

  async function send(
    seen: Pick<Position, 'epoch' | 'since'>,
    phase: string,
    authority: Authority | 'none',
  ): Promise<Announcement> {
    const { epoch, since } = seen;
    const reply = await cutoverHeartbeat(store, key, id, registration, epoch, since, phase, authority);
    if (reply.kind !== 'ok') throw new Error(whyNotServing(reply));
    return toAnnouncement(reply);
  }

  async function beat(): Promise<void> {
    const sentAt = performance.now();
    acknowledged = acknowledges(position, unfinished());
    try {
      const { epoch, phase } = position;
      const held = phase !== undefined && isUnsaved() ? 'unsaved' : '-';
      position = follow(await send(position, acknowledged ?? held, vouchedAuthority(position)), epoch);
      onAnswer(position, sentAt);
    } catch {
      // An unavailable store is reported elsewhere; the mode stays as it is.
    }
  }

  /** Sends a heartbeat now. One at a time: a caller that comes during one waits for the one after. */
  async function refresh(): Promise<void> {
    await running;
    // One that comes after its removal would register the instance again.
    if (isStopped) return;
    running ??= beat().finally(() => {
      running = undefined;
      plan();
    });
    await running;
  }

  /** Plans the next heartbeat: at once if there is a phase to acknowledge, as after the last change has ended. */
  function plan(): void {
    if (isStopped) return;
    clearTimeout(timer);
    const isUrgent = position.phase !== undefined && acknowledges(position, unfinished()) !== acknowledged;
    const delay = isUrgent ? 0 : position.phase === undefined ? interval.usual : interval.switching;
    timer = setTimeout(() => void refresh(), delay);
    timer.unref();
  }
}

/** Why a process must not serve in the mode that is stored, with the remedy. */
function whyNotServing(reply: Exclude<HeartbeatReply, { kind: 'ok' }>): string {
  switch (reply.kind) {
    case 'needs-replay':
      return 'the mode of the cut-over is reverse, in which every instance records changes for the legacy service: set REPLAY_SECRET to the same secret as the other instances';
    case 'needs-legacy':
      return needsLegacy(reply.mode);
    case 'native-instances':
      return `LEGACY_BASE_URL is set, but instances without it already serve from this store (${reply.ids.join(', ')}): stop them first, or run profile-bridge admin cutover set native to keep Redis the authority`;
  }
}

/** Why a process that does not know the legacy service must not serve in a mode. */
export function needsLegacy(mode: string): string {
  return `the mode of the cut-over is ${mode}, which needs the legacy service: set LEGACY_BASE_URL to its address, until the cut-over has reached native (src/cutover/README.md)`;
}
