import { createSorter } from './disk/sorter.ts';
import type { Workspace } from './disk/workspace.ts';

/** What becomes of a record that is not simply brought in. */
export type Decision =
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
      let next: { seq: number; decision: Decision } | undefined;
      let isDone = false;
      const advance = async (): Promise<void> => {
        const line = await lines.next();
        isDone = line.done === true;
        next = line.done === true ? undefined : parse(line.value);
      };
      return {
        upTo: async (endSeq) => {
          const found = new Map<number, Decision>();
          if (next === undefined && !isDone) await advance();
          for (; next !== undefined && next.seq < endSeq; await advance()) found.set(next.seq, next.decision);
          return found;
        },
      };
    },
  };
}

function parse(line: string): { seq: number; decision: Decision } {
  return { seq: Number(line.slice(0, -1)), decision: decisions.get(line.slice(-1)) ?? 'refused' };
}
