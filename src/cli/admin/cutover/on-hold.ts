import { setTimeout as sleep } from 'node:timers/promises';
import { readDoubts } from '../../../cutover/compare/summary.ts';
import { authorityOf, type Mode } from '../../../cutover/modes.ts';
import type { ReplayQueue } from '../../../cutover/replay/queue/queue.ts';
import { readState } from '../../../cutover/verdict/evidence.ts';
import { judgeDoubts, judgeSetAside } from '../../../cutover/verdict/readiness.ts';
import { counted } from '../../../lib/numbers.ts';
import type { RedisClient } from '../../../redis/connection/client.ts';
import { replayerKey } from '../../../redis/keys.ts';
import { adminCommand } from '../../command-line.ts';
import { inWords } from './texts.ts';

interface Step {
  from: Mode;
  to: Mode;
  /** Whether Redis has lost a switch, so that changes of another mode than `from` may wait. */
  hasLostSwitch: boolean;
}

/** Whether nothing is replayed any more after a step. */
export function endsReplay({ from, to, hasLostSwitch }: Step): boolean {
  return to !== 'reverse' && (from === 'reverse' || hasLostSwitch);
}

/**
 * What prevents the switch once changes have stopped. Their adoptions have ended by then, and gaps are recorded: what is
 * in doubt remains in doubt.
 */
export async function obstaclesOnHold(
  store: RedisClient,
  keyPrefix: string,
  queue: ReplayQueue,
  step: Step,
  force = false,
): Promise<string[]> {
  const { from, to, hasLostSwitch } = step;
  // The legacy service must not get authority without what waits, whatever is forced, unless it may have newer values.
  if (endsReplay(step) && !(to === 'native' && force)) {
    const { reasons, setAside } = await untilReplayed(store, keyPrefix, queue, force && hasLostSwitch);
    return force ? reasons : [...reasons, ...judgeSetAside(setAside, to).map(inWords)];
  }
  if (force || authorityOf(to) === authorityOf(from)) return [];
  const doubts = await readDoubts(store, keyPrefix);
  return judgeDoubts(await readState(store, keyPrefix), doubts).map(inWords);
}

/** How long a switch waits for the last changes to be replayed, in ms: clients' changes wait meanwhile. */
const maxReplayMs = 1500;

/**
 * Waits until everything has been replayed, unless it may be discarded, and no instance replays any more; returns what
 * prevents that, and how many changes are set aside by then.
 */
async function untilReplayed(
  store: RedisClient,
  keyPrefix: string,
  queue: ReplayQueue,
  mayDiscard: boolean,
): Promise<{ reasons: string[]; setAside: number }> {
  const deadline = performance.now() + maxReplayMs;
  for (;;) {
    // First: whoever has the lease may still queue a change again.
    const holder = await store.get(replayerKey(keyPrefix));
    const isLate = performance.now() >= deadline;
    if (isLate || (holder === null && (mayDiscard || (await queue.listed()).length === 0))) {
      const { entries: waiting, setAside } = await queue.state();
      const entries = mayDiscard ? 0 : waiting;
      if (entries === 0 && holder === null) return { reasons: [], setAside };
      if (isLate) {
        const what =
          entries > 0
            ? `${counted(entries, 'change')} could not be replayed to the legacy service in time`
            : `instance ${holder} has not given up the replay`;
        return { reasons: [`${what}: run this again, or see ${adminCommand} cutover status`], setAside };
      }
      // An instance that was killed has not put it on the list.
      if (entries > 0) await queue.restoreList();
    }
    await sleep(25);
  }
}
