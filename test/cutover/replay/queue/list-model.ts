import { explore, Violation, type Explored } from '../../../support/models/explore.ts';

/*
 * How organizations get on the list of those with waiting changes and leave it (src/cutover/replay/queue/list.ts), and
 * how the replayer learns of new changes by it, as a model: two writers and two replayers of one organization, whose
 * commands come in any order. The second replayer has lost its lease, and only takes the organization off the list.
 */

interface World {
  /** How many changes of the organization wait, and how many of them the replayer has not read. */
  waiting: number;
  unread: number;
  /** The token with which it is on the list, 0 if it is not; and the last one, since each is another. */
  listed: number;
  last: number;
  /** The token that the replayer has seen, 0 if it has not opened the organization, and whether it is about to read. */
  seen: number;
  isReading: boolean;
  /** How many changes each writer has yet to make, and whether it has yet to announce one. */
  writers: { left: number; isAnnouncing: boolean }[];
  /** What each replayer does next to take the organization off the list. */
  closers: { at: 'idle' | 'remove' | 'look' | 'add'; left: number }[];
}

export interface Scenario {
  /** How many changes each writer makes, and how often each replayer takes the organization off the list. */
  changes: number;
  closings: number;
  /** A mistake, which the exploration has to find. `counts`: tokens begin again once it is off the list. */
  mistake?: 'announces-before' | 'does-not-look-again' | 'reads-before' | 'counts';
}

function* nextSteps(world: World, { mistake }: Scenario): Generator<[step: string, next: World]> {
  const { waiting, unread, listed, last, seen, isReading, writers, closers } = world;
  const token = mistake === 'counts' ? listed + 1 : last + 1;
  const announced = { listed: token, last: token };
  for (const [n, { left, isAnnouncing }] of writers.entries()) {
    const put = (writer: World['writers'][number], rest: Partial<World>): World => ({
      ...world,
      ...rest,
      writers: writers.with(n, writer),
    });
    const queued = { waiting: waiting + 1, unread: unread + 1 };
    if (mistake === 'announces-before') {
      if (isAnnouncing) yield [`writer ${n}: queues`, put({ left, isAnnouncing: false }, queued)];
      else if (left > 0)
        yield [`writer ${n}: announces`, put({ left: left - 1, isAnnouncing: true }, announced)];
    } else if (isAnnouncing) {
      yield [`writer ${n}: announces`, put({ left, isAnnouncing: false }, announced)];
    } else if (left > 0) {
      yield [`writer ${n}: queues`, put({ left: left - 1, isAnnouncing: true }, queued)];
    }
  }
  const isClosing = closers[0]?.at !== 'idle';
  if (isReading) {
    if (mistake === 'reads-before') yield ['sees the token', { ...world, seen: listed, isReading: false }];
    else yield ['reads', { ...world, unread: 0, isReading: false }];
  } else if (!isClosing && listed !== 0 && listed !== seen) {
    if (mistake === 'reads-before') yield ['reads', { ...world, unread: 0, isReading: true }];
    else yield ['sees the token', { ...world, seen: listed, isReading: true }];
  }
  if (waiting > unread) yield ['replay', { ...world, waiting: waiting - 1 }];
  for (const [n, { at, left }] of closers.entries()) {
    const go = (to: typeof at, rest: Partial<World> = {}): World => ({
      ...world,
      // Afterwards the replayer opens the organization again if it is still listed.
      ...(n === 0 && to === 'idle' && { seen: 0 }),
      ...rest,
      closers: closers.with(n, { at: to, left: at === 'idle' ? left - 1 : left }),
    });
    const isWaiting = waiting > 0;
    const after = mistake === 'does-not-look-again' ? 'idle' : 'look';
    const mayClose = n > 0 || (seen > 0 && !isReading && waiting === unread);
    if (at === 'idle' && left > 0 && mayClose)
      yield [`replayer ${n}: looks`, go(isWaiting ? 'idle' : 'remove')];
    if (at === 'remove') yield [`replayer ${n}: removes`, go(after, { listed: 0 })];
    if (at === 'look') yield [`replayer ${n}: looks again`, go(isWaiting ? 'add' : 'idle')];
    if (at === 'add') yield [`replayer ${n}: adds`, go('idle', announced)];
  }
}

export function exploreList(scenario: Scenario): Explored {
  const { changes, closings } = scenario;
  const isAtRest = ({ writers, closers, isReading }: World): boolean =>
    !isReading &&
    writers.every(({ isAnnouncing }) => !isAnnouncing) &&
    closers.every(({ at }) => at === 'idle');
  return explore<World>({
    start: {
      waiting: 0,
      unread: 0,
      listed: 0,
      last: 0,
      seen: 0,
      isReading: false,
      writers: [1, 2].map(() => ({ left: changes, isAnnouncing: false })),
      closers: [1, 2].map(() => ({ at: 'idle', left: closings })),
    },
    nextSteps: (world) => nextSteps(world, scenario),
    keyOf: (world) => JSON.stringify(world),
    isAtRest,
    check: (world) => {
      if (!isAtRest(world)) return;
      const { waiting, unread, listed, seen } = world;
      if (waiting > 0 && listed === 0) {
        throw new Violation('an organization with waiting changes is not on the list');
      }
      if (unread > 0 && listed === seen) throw new Violation('a change was queued that nobody learns of');
    },
  });
}
