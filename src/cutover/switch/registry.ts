import { randomBytes } from 'node:crypto';
import { hasEnded, thisProcess, type ProcessIdentity } from '../../lib/system/process-identity.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { cutoverKey } from '../../redis/keys.ts';
import { authorityOf, isMode, type Authority, type Mode } from '../modes.ts';
import type { Announcement, Phase } from './protocol.ts';

export const cutoverHeartbeat = script<
  [id: string, registration: string, seen: number, acknowledged: string, first: number, legacy: string],
  | ['ok', mode: string, epoch: number, since: string, to: string, phase: string]
  | ['needs-legacy', mode: string]
  | ['native-instances', ids: string[]]
  | ['needs-replay']
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

export const cutoverRemove = script<[id: string, reason: string], number>('cutover/remove');

const cutoverRead = script<
  [],
  [
    now: string,
    mode: string,
    epoch: number,
    since: string,
    by: string,
    to: string,
    phase: string,
    gap: string,
    verified: string,
    instances: (string | number)[],
    history: string[],
  ]
>('cutover/read');

/** What an instance reports about itself when it registers. */
export interface Registration extends ProcessIdentity {
  kind: 'bridge' | 'migrate';
  /** Whether it can reach the legacy service (LEGACY_BASE_URL); true for tools, which need not. */
  legacy: boolean;
  /** Whether it can replay changes to it (REPLAY_SECRET). */
  replay: boolean;
}

/** A registration of this process, with an id by which an operator can recognize it. */
export function newRegistration(of: Pick<Registration, 'kind' | 'legacy' | 'replay'>): {
  id: string;
  registration: Registration;
} {
  const process = thisProcess();
  const id = `${process.host}-${process.pid}-${randomBytes(3).toString('hex')}`;
  return { id, registration: { ...process, ...of } };
}

/** An instance as the store knows it. */
export interface Instance extends Registration {
  id: string;
  /** How long ago its last heartbeat was, in ms, by the store's clock. */
  silentMs: number;
  /** The highest epoch that it has seen, and the phase of a switch that it has acknowledged. */
  epoch: number;
  acknowledged: Phase | undefined;
}

/** The state of the cut-over, for people. */
export interface CutoverState extends Announcement {
  /** Whether a mode was ever stored; it is native otherwise. */
  isStored: boolean;
  /** The store's clock, ms. */
  now: number;
  /** The command that made the last switch. */
  by: string;
  /** When an instance last ended in a way that leaves its changes in doubt, and how that is known. */
  gap?: { at: number; reason: string };
  /** When the snapshot was taken that a verify of everything matched, ms. */
  verifiedAt?: number;
  instances: Instance[];
  /** The modes so far, oldest first. */
  history: ModePeriod[];
}

/** A mode of the past or the present. */
interface ModePeriod {
  mode: Mode;
  /** The number under which it was set. */
  epoch: number;
  /** ms */
  since: number;
  /** The command that set it, or `default`. */
  by: string;
}

export async function readCutover(store: RedisClient, prefix: string): Promise<CutoverState> {
  const [now, mode, epoch, since, by, to, phase, gap, verified, rows, history] = await cutoverRead(
    store,
    cutoverKey(prefix),
  );
  const [, gapAt, reason] = /^(\d+) (.*)$/s.exec(gap) ?? [];
  return {
    ...toAnnouncement(mode, epoch, since, to, phase),
    isStored: mode !== '',
    now: Number(now),
    by,
    ...(gapAt !== undefined && { gap: { at: Number(gapAt), reason: reason ?? '' } }),
    ...(verified !== '' && { verifiedAt: Number(verified) }),
    instances: toInstances(rows, Number(now)),
    history: toHistory(history),
  };
}

export function toAnnouncement(
  mode: string,
  epoch: number,
  since: string,
  to: string,
  phase: string,
): Announcement {
  return {
    mode: isMode(mode) ? mode : 'native',
    epoch,
    since: Number(since),
    ...(isMode(to) && { underWay: { to, phase: phase as Phase } }),
  };
}

function toHistory(rows: readonly string[]): ModePeriod[] {
  const periods: ModePeriod[] = [];
  for (let row = 0; row + 1 < rows.length; row += 2) {
    const [, since, mode = '', by = ''] = /^(\d+) (\S+) (.*)$/s.exec(rows[row + 1] ?? '') ?? [];
    if (isMode(mode)) periods.push({ epoch: Number(rows[row]), mode, since: Number(since), by });
  }
  return periods.sort((one, other) => one.epoch - other.epoch);
}

/**
 * When the authority last changed; undefined if it never did. Before the first command that set a mode, it was Redis.
 */
export function lastChangeOfAuthority(history: readonly ModePeriod[]): ModePeriod | undefined {
  let authority: Authority | undefined;
  let changed: ModePeriod | undefined;
  for (const period of history) {
    const before = authority ?? (period.by === 'default' ? authorityOf(period.mode) : 'redis');
    authority = authorityOf(period.mode);
    if (authority !== before) changed = period;
  }
  return changed;
}

function toInstances(rows: readonly (string | number)[], now: number): Instance[] {
  const instances: Instance[] = [];
  for (let row = 0; row + 4 < rows.length; row += 5) {
    const [id, registration, at, epoch, phase] = rows.slice(row, row + 5).map(String);
    instances.push({
      ...(JSON.parse(registration ?? '{}') as Registration),
      id: id ?? '',
      silentMs: Math.max(0, now - Number(at)),
      epoch: Number(epoch),
      acknowledged: phase === '-' ? undefined : (phase as Phase),
    });
  }
  return instances.sort((one, other) => (one.id < other.id ? -1 : 1));
}

/**
 * Removes the registrations of processes that have certainly ended, and returns their ids. The changes of such an
 * instance are in doubt, and are recorded as a gap; a migration resumes where it stopped once it is run again.
 */
export async function removeEnded(
  store: RedisClient,
  prefix: string,
  instances: readonly Instance[],
): Promise<string[]> {
  const ended = instances.filter(hasEnded);
  for (const { id, kind } of ended) {
    const reason = kind === 'migrate' ? '' : `${id} ended without stopping`;
    await cutoverRemove(store, cutoverKey(prefix), id, reason);
  }
  return ended.map(({ id }) => id);
}
