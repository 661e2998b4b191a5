import { randomBytes } from 'node:crypto';
import { pairsOf } from '../../lib/collections/pairs.ts';
import { hasEnded, thisProcess, type ProcessIdentity } from '../../lib/system/process-identity.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { cutoverKey } from '../../redis/keys.ts';
import { authorityOf, isMode, type Authority, type Mode } from '../modes.ts';
import type { Announcement, SwitchPhase } from './protocol.ts';

/** The mode, and the switch under way, as scripts reply them; what is absent is empty. */
interface StoredMode {
  mode: string;
  epoch: number;
  since: string;
  to: string;
  phase: string;
  lost: number;
}

export type HeartbeatReply =
  | ({ kind: 'ok' } & StoredMode)
  | { kind: 'needs-legacy'; mode: string }
  | { kind: 'native-instances'; ids: string[] }
  | { kind: 'needs-replay' };

export const cutoverHeartbeat = script<
  [
    id: string,
    registration: string,
    seen: number,
    since: number,
    acknowledged: string,
    authority: Authority | 'none',
  ],
  HeartbeatReply
>('cutover/heartbeat');

export const cutoverBegin = script<
  [token: string, from: string, to: string, leaseMs: number],
  ['begun', epoch: number] | ['busy', to: string] | ['changed', mode: string]
>('cutover/begin');

export const cutoverAdvance = script<
  [token: string, phase: string, leaseMs: number, goOn: number, by: string],
  ['waiting', ids: string[]] | ['ready'] | ['lost']
>('cutover/advance');

export const cutoverWithdraw = script<[token: string], 'withdrawn' | 'waiting' | 'done'>('cutover/withdraw');

/** Its key is the base of an organization. */
export const cutoverRaiseEpoch = script<[epoch: number, from: string, to: string], number>(
  'cutover/raise_epoch',
);

export const cutoverRemove = script<[id: string, reason: string], null>('cutover/remove');

const cutoverRead = script<[], [now: string, fields: string[]]>('cutover/read');

/** What an instance reports about itself when it registers. */
export interface Registration extends ProcessIdentity {
  kind: 'bridge' | 'migrate';
  /** Whether LEGACY_BASE_URL is set; true for a migration, which need not reach the legacy service. */
  legacy: boolean;
  /** Whether it can replay changes to it (REPLAY_SECRET); true for a migration. */
  replay: boolean;
}

/** A registration of this process, with an id by which an operator can recognize it. */
export function newRegistration({ kind, legacy, replay }: Pick<Registration, 'kind' | 'legacy' | 'replay'>) {
  const registration: Registration = { ...thisProcess(), kind, legacy, replay };
  const { host, pid } = registration;
  return { id: `${host}-${pid}-${randomBytes(3).toString('hex')}`, registration };
}

/** The state of the cut-over, for people; times in ms by the store's clock. */
export type CutoverState = Awaited<ReturnType<typeof readCutover>>;

export type Instance = CutoverState['instances'][number];

interface ModePeriod {
  mode: Mode;
  epoch: number;
  /** ms */
  since: number;
  /** The command that set it, or `default`. */
  by: string;
}

export async function readCutover(store: RedisClient, prefix: string) {
  const [time, fields] = await cutoverRead(store, cutoverKey(prefix));
  const now = Number(time);
  const stored = Object.fromEntries(pairsOf(fields));
  const { mode = '', epoch = '0', since = '', by = '', to = '', phase = '', lost = '0', gap = '' } = stored;
  const { verified = '', 'verified-on': verifiedOn = '', 'switched-on': switchedOn = '' } = stored;
  const [, gapAt, reason] = /^(\d+) (.*)$/s.exec(gap) ?? [];
  const instances = fieldsBelow('beat:', stored).map(([id, beat]) => {
    const [at, seen, acknowledged] = beat.split(' ');
    return {
      ...(JSON.parse(stored[`instance:${id}`] ?? '{}') as Registration),
      id,
      /** How long ago its last heartbeat was. */
      silentMs: Math.max(0, now - Number(at)),
      /** The highest epoch that it has seen, and the phase of a switch that it has acknowledged. */
      epoch: Number(seen),
      acknowledged: ['-', 'unsaved'].includes(acknowledged ?? '') ? undefined : (acknowledged as SwitchPhase),
      /** Whether it cannot acknowledge a phase because it has gaps that it cannot record. */
      hasUnsavedGaps: acknowledged === 'unsaved',
    };
  });
  return {
    ...toAnnouncement({ mode, epoch: Number(epoch), since, to, phase, lost: Number(lost) }),
    /** As of every instance: those of builds that record no lost switch show it by what they have seen. */
    hasLostSwitch: Number(lost) > 0 || instances.some(({ epoch: seen }) => seen > Number(epoch)),
    /** Whether a mode is stored; it is native otherwise, unless it was lost. */
    isStored: mode !== '',
    now,
    /** The command that made the last switch. */
    by,
    /** When an instance last ended in a way that leaves its changes in doubt, and how that is known. */
    ...(gapAt !== undefined && { gap: { at: Number(gapAt), reason: reason ?? '' } }),
    /** When the snapshot was taken that a verify of everything matched. */
    ...(verified !== '' && { verifiedAt: Number(verified) }),
    /** The replication IDs of Redis at that time. */
    ...(verifiedOn !== '' && { verifiedOn }),
    instances: instances.sort((one, other) => (one.id < other.id ? -1 : 1)),
    /** The replication IDs when Redis last became the authority. */
    ...(switchedOn !== '' && { switchedOn }),
    /** The modes so far, oldest first. */
    history: toHistory(fieldsBelow('history:', stored)),
  };
}

export function toAnnouncement({ mode, epoch, since, to, phase, lost }: StoredMode): Announcement {
  return {
    mode: isMode(mode) ? mode : 'native',
    epoch,
    since: Number(since),
    isLost: mode === '' && epoch > 0,
    hasLostSwitch: lost > 0,
    ...(isMode(to) && { underWay: { to, phase: phase as SwitchPhase } }),
  };
}

/** The fields whose names begin with this, by the rest of their names. */
function fieldsBelow(start: string, stored: Record<string, string>): [name: string, value: string][] {
  const found = Object.entries(stored).filter(([name]) => name.startsWith(start));
  return found.map(([name, value]) => [name.slice(start.length), value]);
}

function toHistory(stored: readonly [epoch: string, row: string][]): ModePeriod[] {
  const periods: ModePeriod[] = [];
  for (const [epoch, row] of stored) {
    const [, since, mode = '', by = ''] = /^(\d+) (\S+) (.*)$/s.exec(row) ?? [];
    if (isMode(mode)) periods.push({ epoch: Number(epoch), mode, since: Number(since), by });
  }
  return periods.sort((one, other) => one.epoch - other.epoch);
}

/**
 * When the authority last changed; undefined if it never did. Before the first command that set a mode, it was Redis.
 */
export function lastChangeOfAuthority(history: readonly ModePeriod[]): ModePeriod | undefined {
  return history.findLast(({ mode, by }, at) => {
    const before = history[at - 1]?.mode ?? (by === 'default' ? mode : 'native');
    return authorityOf(mode) !== authorityOf(before);
  });
}

/**
 * Removes the registrations, of all or of some, whose processes have certainly ended. The changes of such an instance
 * are in doubt: a gap. A migration resumes where it stopped once it is run again.
 */
export async function removeEnded(
  store: RedisClient,
  prefix: string,
  some?: readonly string[],
): Promise<void> {
  for (const instance of (await readCutover(store, prefix)).instances) {
    const { id, kind } = instance;
    if (some?.includes(id) === false || !hasEnded(instance)) continue;
    const reason = kind === 'migrate' ? '' : `${id} ended without stopping`;
    await cutoverRemove(store, cutoverKey(prefix), id, reason);
  }
}
