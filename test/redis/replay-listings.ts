import { explore, Violation, type Explored } from '../support/explore.ts';

/*
 * How organizations get on the list of those with waiting changes and leave it (lua/lib/replay.lua), as a model: two
 * writers and two replayers of one organization, each of which may stop for good, or lose a reply, after any command.
 */

interface Writer {
  /** The listing that it knows of; -1 for none. */
  known: number;
  /** The listing that it was asked to renew, on its way to the list. */
  renewing: number | null;
  left: number;
}

interface World {
  /** The present listing of the organization, and how many of its changes wait. */
  listing: number;
  waiting: number;
  /** The listing under which it is on the list; null where it is not. */
  listed: number | null;
  writers: Writer[];
  /** The listing that each replayer has ended and has yet to take off the list; null for none. */
  ended: (number | null)[];
  closings: number;
}

export interface Scenario {
  /** How many changes each writer makes, and how often a replayer ends a listing. */
  changes: number;
  closings: number;
  /** A mistake, which the exploration has to find. */
  mistake?: 'queues-unlisted' | 'lowers-the-number' | 'removes-any-number' | 'does-not-count';
}

function* nextSteps(world: World, { mistake }: Scenario): Generator<[step: string, next: World]> {
  const { listing, waiting, listed, writers, ended, closings } = world;
  for (const [n, writer] of writers.entries()) {
    const put = (changed: Partial<Writer>, rest: Partial<World> = {}): World => ({
      ...world,
      ...rest,
      writers: writers.with(n, { ...writer, ...changed }),
    });
    const { known, renewing, left } = writer;
    if (renewing !== null) {
      const renewed = mistake === 'lowers-the-number' ? renewing : Math.max(renewing, listed ?? 0);
      yield [`writer ${n}: lists ${renewing}`, put({ known: renewing, renewing: null }, { listed: renewed })];
      yield [`writer ${n}: lists ${renewing}, reply lost`, put({ renewing: null }, { listed: renewed })];
    } else if (left > 0) {
      if (known === listing || (mistake === 'queues-unlisted' && known >= 0)) {
        yield [`writer ${n}: queues`, put({ left: left - 1 }, { waiting: waiting + 1 })];
      } else {
        yield [`writer ${n}: is refused`, put({ renewing: listing })];
      }
    }
  }
  if (waiting > 0) yield ['replay', { ...world, waiting: waiting - 1 }];
  for (const [n, number] of ended.entries()) {
    if (number !== null) {
      const isNewer = listed !== null && listed > number && mistake !== 'removes-any-number';
      yield [
        `replayer ${n}: takes ${number} off the list`,
        { ...world, listed: isNewer ? listed : null, ended: ended.with(n, null) },
      ];
      yield [`replayer ${n}: is killed`, { ...world, ended: ended.with(n, null) }];
    } else if (waiting === 0 && listed !== null && closings > 0) {
      const next = mistake === 'does-not-count' ? listing : listing + 1;
      yield [
        `replayer ${n}: ends ${listing}`,
        { ...world, listing: next, ended: ended.with(n, listing), closings: closings - 1 },
      ];
    }
  }
}

/** At every state, since everybody may be killed there. */
function check({ waiting, listed, listing }: World): void {
  if (waiting > 0 && (listed === null || listed < listing)) {
    throw new Violation('changes wait in an organization that is not on the list');
  }
}

export function exploreListings(scenario: Scenario): Explored {
  const writer: Writer = { known: -1, renewing: null, left: scenario.changes };
  return explore<World>({
    start: {
      listing: 0,
      waiting: 0,
      listed: null,
      writers: [writer, writer],
      ended: [null, null],
      closings: scenario.closings,
    },
    nextSteps: (world) => nextSteps(world, scenario),
    keyOf: (world) => JSON.stringify(world),
    isAtRest: ({ waiting, writers }) => waiting === 0 && writers.every(({ left }) => left === 0),
    check,
  });
}
