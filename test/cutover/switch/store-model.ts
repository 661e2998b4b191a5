import type { Authority, Mode } from '../../../src/cutover/modes.ts';
import type { Announcement, SwitchPhase } from '../../../src/cutover/switch/protocol.ts';

/*
 * The store's side of a switch, as src/redis/lua/cutover/ has it: exploration.test.ts explores it, and
 * store-model.test.ts holds the scripts against it.
 */

interface Beat {
  epoch: number;
  phase: SwitchPhase | '-';
  /** Whether it is so long ago that a withdrawal does not wait for the instance. */
  isSilent: boolean;
}

/** What an instance knows: the highest epoch, and since when the mode holds. */
type Seen = Pick<StoreState, 'epoch' | 'since'>;

/** Later than any mode before. */
const afterLoss = 1000;

export interface StoreState {
  /** Empty if none is stored. */
  mode: Mode | '';
  epoch: number;
  /** Rises with each mode that comes into force. */
  since: number;
  /** The highest epoch that instances have seen, once Redis has lost it and until a mode is set; else 0. */
  lost: number;
  /** The epoch of the last switch that is in the history; -1 if none is. */
  made: number;
  underWay?: { to: Mode; phase: SwitchPhase; token: string; isExpired: boolean };
  /** The token of the last switch that was made. */
  done: string;
  beats: Record<string, Beat>;
}

export function announcement({ mode, epoch, since, lost, underWay }: StoreState): Announcement {
  const isLost = mode === '' && epoch > 0;
  return {
    mode: mode === '' ? 'native' : mode,
    epoch: Math.max(epoch, lost),
    since,
    isLost,
    hasLostSwitch: lost > 0,
    ...(underWay && { underWay: { to: underWay.to, phase: underWay.phase } }),
  };
}

function unacknowledged({ epoch, lost, underWay, beats }: StoreState): string[] {
  return Object.keys(beats)
    .filter((id) => {
      const beat = beats[id];
      if (beat === undefined) return false;
      const isDone = beat.epoch === Math.max(epoch, lost) && beat.phase === underWay?.phase;
      return !isDone && !(underWay?.phase === 'back' && beat.isSilent);
    })
    .sort();
}

function withdrawn(state: StoreState): StoreState {
  const { underWay, ...rest } = state;
  if (underWay === undefined) return state;
  if (underWay.phase === 'reads') return { ...rest, underWay: { ...underWay, phase: 'back' } };
  return underWay.phase === 'stop' || unacknowledged(state).length === 0 ? rest : state;
}

function settled(state: StoreState): StoreState {
  const isOver = state.underWay?.phase === 'back' || state.underWay?.isExpired === true;
  return isOver ? withdrawn(state) : state;
}

/** Where no mode is stored, it becomes shadow unless Redis may have been the authority; a lost switch is noted. */
function withMode(state: StoreState, { epoch, since }: Seen, authority: Authority | 'none'): StoreState {
  if (state.mode !== '') {
    const hasLostEnd = epoch === state.epoch && since > state.since && epoch !== state.made;
    const isLoss = authority !== 'none' && (hasLostEnd || epoch > Math.max(state.epoch, state.lost));
    return isLoss ? { ...state, lost: epoch } : state;
  }
  const inShadow = (made: number): StoreState => ({
    ...state,
    mode: 'shadow',
    epoch: made,
    since: afterLoss,
    made,
  });
  if (authority === 'none') return state.epoch > 0 ? state : inShadow(0);
  if (authority === 'legacy' && state.epoch === 0) return inShadow(epoch);
  return { ...state, epoch: Math.max(state.epoch, epoch) };
}

export function heartbeat(
  before: StoreState,
  id: string,
  seen: Seen,
  phase: SwitchPhase | '-',
  authority: Authority | 'none',
): StoreState {
  const state = withMode(settled(before), seen, authority);
  const beat: Beat =
    authority === 'none'
      ? { epoch: Math.max(state.epoch, state.lost), phase: state.underWay?.phase ?? '-', isSilent: false }
      : { epoch: seen.epoch, phase, isSilent: false };
  return settled({ ...state, beats: { ...state.beats, [id]: beat } });
}

export function begin(
  before: StoreState,
  token: string,
  from: Mode,
  to: Mode,
): { state: StoreState; reply: 'begun' | 'busy' | 'changed' } {
  const state = settled(before);
  if (state.underWay?.token === token) return { state, reply: 'begun' };
  if (state.underWay !== undefined) return { state, reply: 'busy' };
  if ((state.mode || 'native') !== from) return { state, reply: 'changed' };
  const mode = state.mode === '' && state.epoch === 0 ? 'native' : state.mode;
  const seen = Object.values(state.beats).map((beat) => beat.epoch);
  const epoch = Math.max(state.epoch, state.lost, ...seen) + 1;
  return {
    state: { ...state, mode, epoch, underWay: { to, phase: 'stop', token, isExpired: false } },
    reply: 'begun',
  };
}

export function advance(
  state: StoreState,
  token: string,
  phase: SwitchPhase,
  goOn: boolean,
): { state: StoreState; reply: 'waiting' | 'ready' | 'lost' } {
  const { underWay, ...rest } = state;
  if (underWay?.token !== token) return { state, reply: state.done === token ? 'ready' : 'lost' };
  if (underWay.isExpired || underWay.phase === 'back') return { state: withdrawn(state), reply: 'lost' };
  if (underWay.phase !== phase) return { state, reply: phase === 'stop' ? 'ready' : 'lost' };
  if (unacknowledged(state).length > 0) return { state, reply: 'waiting' };
  if (!goOn) return { state, reply: 'ready' };
  return {
    state:
      phase === 'stop'
        ? { ...state, underWay: { ...underWay, phase: 'reads' } }
        : { ...rest, mode: underWay.to, since: state.since + 1, lost: 0, made: state.epoch, done: token },
    reply: 'ready',
  };
}

export function withdraw(
  state: StoreState,
  token: string,
): { state: StoreState; reply: 'withdrawn' | 'waiting' | 'done' } {
  if (state.underWay?.token !== token) return { state, reply: state.done === token ? 'done' : 'withdrawn' };
  const after = withdrawn(state);
  return { state: after, reply: after.underWay === undefined ? 'withdrawn' : 'waiting' };
}

export function forget(state: StoreState, id: string): StoreState {
  const { [id]: _removed, ...beats } = state.beats;
  return { ...state, beats };
}

/** Redis comes back without its data. */
export const emptied: StoreState = { mode: '', epoch: 0, since: 0, lost: 0, made: -1, done: '', beats: {} };

/** Redis comes back in an earlier state: before the last switches, or during the last one that is left. */
export function regressed(
  { underWay: _lost, ...state }: StoreState,
  switches: number,
  during?: SwitchPhase,
): StoreState {
  return {
    ...state,
    epoch: Math.max(0, state.epoch - switches),
    since: Math.max(1, state.since - 1),
    made: -1,
    ...(during && { underWay: { to: 'mirror', phase: during, token: 't1', isExpired: false } }),
  };
}
