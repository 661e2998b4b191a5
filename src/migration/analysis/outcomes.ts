import type { Entity } from '../records/records.ts';

/** The effect of a record on Redis, actual or planned. */
export type Outcome =
  | 'created'
  | 'updated'
  /** Redis already has it, field by field. */
  | 'unchanged'
  /** Changed through the bridge since: it is left as it is. */
  | 'kept'
  /** Redis has a later updatedAt, without a local write. */
  | 'newer'
  /** Another user has the username. */
  | 'taken';

/** The final outcome of a row of the source. */
type Fate = Outcome | 'duplicate' | 'refused' | 'invalid';

export type Tally = Record<Fate, number>;

function emptyTally(): Tally {
  return {
    created: 0,
    updated: 0,
    unchanged: 0,
    kept: 0,
    newer: 0,
    taken: 0,
    duplicate: 0,
    refused: 0,
    invalid: 0,
  };
}

/** Counts of the outcomes of rows, by entity and by organization. */
export interface Tallies {
  add: (entity: Entity, organizationId: string | undefined, fate: Fate) => void;
  /** Takes back what was added. */
  undo: (entity: Entity, organizationId: string, fate: Fate) => void;
  /** Of one entity. */
  of: (entity: Entity) => Tally;
  byOrganization: () => ReadonlyMap<string, Tally>;
}

export function createTallies(): Tallies {
  const entities = new Map<Entity, Tally>();
  const organizations = new Map<string, Tally>();
  const own = <Key>(all: Map<Key, Tally>, key: Key): Tally => {
    let tally = all.get(key);
    if (tally === undefined) all.set(key, (tally = emptyTally()));
    return tally;
  };
  return {
    add: (entity, organizationId, fate) => {
      own(entities, entity)[fate] += 1;
      if (organizationId !== undefined) own(organizations, organizationId)[fate] += 1;
    },
    undo: (entity, organizationId, fate) => {
      own(entities, entity)[fate] -= 1;
      own(organizations, organizationId)[fate] -= 1;
    },
    of: (entity) => own(entities, entity),
    byOrganization: () => organizations,
  };
}
