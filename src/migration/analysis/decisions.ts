import { createSorter } from './sorter.ts';
import type { Workspace } from './workspace.ts';
import type { Entity } from '../records/records.ts';

/** What becomes of a record that is not simply brought in. */
type Decision =
  /** Another record of the same key holds. */
  | 'superseded'
  /** A problem keeps it out. */
  | 'refused'
  /** It is brought in without its username. */
  | 'nameless';

const letters: Record<Decision, string> = { superseded: 's', refused: 'r', nameless: 'n' };
const decisions = new Map(
  Object.entries(letters).map(([decision, letter]) => [letter, decision as Decision]),
);

/** Decisions on an entity's records, by their place in the source. */
export interface Decisions {
  add: (seq: number, decision: Decision) => Promise<void>;
  count: (decision: Decision) => number;
  /** Reads them in order. */
  reader: () => DecisionReader;
}

export interface DecisionReader {
  /** The decisions on the records from the last call's end on, up to this one. */
  upTo: (endSeq: number) => Promise<ReadonlyMap<number, Decision>>;
}

const none: ReadonlyMap<number, Decision> = new Map();

/** No decisions yet. At most one is made on a record. */
export function createDecisions(workspace: Workspace): Decisions {
  const sorter = createSorter(workspace);
  const counts: Record<Decision, number> = { superseded: 0, refused: 0, nameless: 0 };
  return {
    count: (decision) => counts[decision],
    add: async (seq, decision) => {
      counts[decision] += 1;
      await sorter.add(`${String(seq).padStart(16, '0')}${letters[decision]}`);
    },
    reader: () => {
      if (Object.values(counts).every((count) => count === 0)) return { upTo: async () => none };
      const lines = sorter.sorted()[Symbol.asyncIterator]();
      let next: IteratorResult<string> | undefined;
      return {
        upTo: async (endSeq) => {
          const found = new Map<number, Decision>();
          next ??= await lines.next();
          while (next.done !== true) {
            const { seq, decision } = parse(next.value);
            if (seq >= endSeq) break;
            found.set(seq, decision);
            next = await lines.next();
          }
          return found;
        },
      };
    },
  };
}

function parse(line: string): { seq: number; decision: Decision } {
  return { seq: Number(line.slice(0, -1)), decision: decisions.get(line.slice(-1)) ?? 'refused' };
}

/** Decisions for every entity, none made yet. */
export function createAllDecisions(workspace: Workspace): Record<Entity, Decisions> {
  return {
    organizations: createDecisions(workspace),
    'api-keys': createDecisions(workspace),
    objects: createDecisions(workspace),
    collections: createDecisions(workspace),
    profiles: createDecisions(workspace),
    denylist: createDecisions(workspace),
  };
}
