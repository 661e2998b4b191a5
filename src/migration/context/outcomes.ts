import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import type { Entity } from '../records/records.ts';

/** The effects of a record on Redis, actual or planned. */
const outcomes = [
  'created',
  'updated',
  /** Redis already has it, field by field. */
  'unchanged',
  /** Changed through the bridge since: it is left as it is. */
  'kept',
  /** Redis has a later updatedAt, without a local write. */
  'newer',
  /** Another user has the username. */
  'taken',
] as const;
export type Outcome = (typeof outcomes)[number];

export function isOutcome(word: string | undefined): word is Outcome {
  return (outcomes as readonly (string | undefined)[]).includes(word);
}

/** Whether it changes what Redis has, or would. */
export function isChange(outcome: Outcome): boolean {
  return outcome === 'created' || outcome === 'updated';
}

/** The final outcomes of a row of the source. */
const fates = [...outcomes, 'duplicate', 'refused', 'invalid'] as const;
type Fate = (typeof fates)[number];

export type Tally = Record<Fate, number>;

export type Tallies = ReturnType<typeof createTallies>;

/** Counts the outcomes of rows, by entity and by organization. */
export function createTallies() {
  const entities = new Map<Entity, Tally>();
  const organizations = new Map<string, Tally>();
  const emptyTally = (): Tally => Object.fromEntries(fates.map((fate) => [fate, 0])) as Tally;
  const own = <Key>(all: Map<Key, Tally>, key: Key): Tally => getOrInsert(all, key, emptyTally);
  return {
    /** `count` is -1 to take back what was added. */
    add: (entity: Entity, organizationId: string | undefined, fate: Fate, count = 1): void => {
      own(entities, entity)[fate] += count;
      if (organizationId !== undefined) own(organizations, organizationId)[fate] += count;
    },
    /** Of one entity. */
    of: (entity: Entity): Tally => own(entities, entity),
    byOrganization: (): ReadonlyMap<string, Tally> => organizations,
  };
}
