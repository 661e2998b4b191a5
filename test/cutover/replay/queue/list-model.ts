import { explore, Violation, type Explored } from '../../../support/explore.ts';

/*
 * How organizations get on the list of those with waiting changes and leave it (src/cutover/replay/queue/queue.ts), as a
 * model: two writers and two replayers of one organization, whose commands come in any order.
 */

interface World {
  /** How many changes of the organization wait, and whether it is on the list. */
  waiting: number;
  isListed: boolean;
  /** How many changes each writer has yet to make, and whether it has yet to announce one. */
  writers: { left: number; isAnnouncing: boolean }[];
  /** What each replayer does next to take the organization off the list. */
  closers: { at: 'idle' | 'remove' | 'look' | 'add'; left: number }[];
}

export interface Scenario {
  /** How many changes each writer makes, and how often each replayer takes the organization off the list. */
  changes: number;
  closings: number;
  /** A mistake, which the exploration has to find. */
  mistake?: 'announces-before' | 'does-not-look-again';
}

function* nextSteps(world: World, { mistake }: Scenario): Generator<[step: string, next: World]> {
  const { waiting, writers, closers } = world;
  for (const [n, { left, isAnnouncing }] of writers.entries()) {
    const put = (writer: World['writers'][number], rest: Partial<World>): World => ({
      ...world,
      ...rest,
      writers: writers.with(n, writer),
    });
    const queued = { waiting: waiting + 1 };
    if (mistake === 'announces-before') {
      if (isAnnouncing) yield [`writer ${n}: queues`, put({ left, isAnnouncing: false }, queued)];
      else if (left > 0)
        yield [`writer ${n}: announces`, put({ left: left - 1, isAnnouncing: true }, { isListed: true })];
    } else if (isAnnouncing) {
      yield [`writer ${n}: announces`, put({ left, isAnnouncing: false }, { isListed: true })];
    } else if (left > 0) {
      yield [`writer ${n}: queues`, put({ left: left - 1, isAnnouncing: true }, queued)];
    }
  }
  if (waiting > 0) yield ['replay', { ...world, waiting: waiting - 1 }];
  for (const [n, { at, left }] of closers.entries()) {
    const go = (to: typeof at, rest: Partial<World> = {}): World => ({
      ...world,
      ...rest,
      closers: closers.with(n, { at: to, left: at === 'idle' ? left - 1 : left }),
    });
    const isWaiting = waiting > 0;
    const after = mistake === 'does-not-look-again' ? 'idle' : 'look';
    if (at === 'idle' && left > 0) yield [`replayer ${n}: looks`, go(isWaiting ? 'idle' : 'remove')];
    if (at === 'remove') yield [`replayer ${n}: removes`, go(after, { isListed: false })];
    if (at === 'look') yield [`replayer ${n}: looks again`, go(isWaiting ? 'add' : 'idle')];
    if (at === 'add') yield [`replayer ${n}: adds`, go('idle', { isListed: true })];
  }
}

export function exploreList(scenario: Scenario): Explored {
  const { changes, closings } = scenario;
  const isAtRest = ({ writers, closers }: World): boolean =>
    writers.every(({ isAnnouncing }) => !isAnnouncing) && closers.every(({ at }) => at === 'idle');
  return explore<World>({
    start: {
      waiting: 0,
      isListed: false,
      writers: [1, 2].map(() => ({ left: changes, isAnnouncing: false })),
      closers: [1, 2].map(() => ({ at: 'idle', left: closings })),
    },
    nextSteps: (world) => nextSteps(world, scenario),
    keyOf: (world) => JSON.stringify(world),
    isAtRest,
    check: (world) => {
      if (isAtRest(world) && world.waiting > 0 && !world.isListed) {
        throw new Violation('an organization with waiting changes is not on the list');
      }
    },
  });
}
