import type { Entity, RecordOf } from '../records/records.ts';
import { createSorter, pad, paddedLength } from '../../lib/bounded-memory/sorter.ts';
import type { Outcome } from '../context/outcomes.ts';
import type { Workspace } from '../../lib/bounded-memory/workspace.ts';

/** A record between reading and writing, with what was found out about it. */
export interface Entry<E extends Entity = Entity> {
  /** Its position in the source: entries are written in this order. */
  readonly seq: number;
  readonly entity: E;
  readonly record: RecordOf[E];
  /** Its place in the source, for people. */
  readonly where: string;
  /** The outcome of comparing it with Redis. */
  readonly outcome: Outcome;
  /** Who has the username in Redis, if that is another user. */
  readonly holder?: string | undefined;
  /** The user's username in Redis, if that is another name. */
  readonly previous?: string | undefined;
  /** Another record of the source may have the same identity. */
  readonly isRepeated?: boolean | undefined;
  /** Its username is on the denylist, which is a warning if it is written as it is. */
  readonly isDenied?: true | undefined;
}

/** What a decision between entries needs to know of one. */
export type Summary = ReturnType<typeof summaryOf>;
type Subject = Pick<RecordOf[Entity], 'organizationId'> & Partial<RecordOf['profiles']>;

export function summaryOf({ record, ...entry }: Entry) {
  const { organizationId, userId, username, updatedAt } = record as Subject;
  return { ...entry, organizationId, userId, username, updatedAt };
}

/** The decision on an entry that is not simply written. */
type Decision =
  /** Another record with the same identity supersedes it. */
  | 'superseded'
  /** It is left out because of a problem. */
  | 'refused'
  /** It is written without its username. */
  | 'nameless';

export type Decided = Entry & {
  readonly decision?: Decision | undefined;
  /** Of its text, in characters. */
  readonly length: number;
};

/** The limit of a batch of entries, so that wide records do not fill the memory. */
export const lengthLimit = { of: (entry: Decided): number => entry.length, most: 512 * 1024 };

export type Spool = ReturnType<typeof createSpool>;

/**
 * Keeps entries between reading and writing, in memory or on disk. Decisions apply to exactly the entries that are
 * written later, even if the source changes meanwhile.
 */
export function createSpool(workspace: Workspace) {
  const sorter = createSorter(workspace);
  let size = 0;
  return {
    get size(): number {
      return size;
    },
    add: (entry: Entry): void => {
      size += 1;
      sorter.add(`${pad(entry.seq)}{${JSON.stringify(entry)}`);
    },
    // Sorts before the entry's own line.
    decide: (seq: number, decision: Decision): void => sorter.add(`${pad(seq)} ${decision}`),
    /** All entries in order, with the first decision on each. */
    entries: function* (): Generator<Decided> {
      let decision: Decision | undefined;
      for (const line of sorter.sorted()) {
        // What follows the number says what the line is.
        const rest = line.slice(paddedLength + 1);
        if (line[paddedLength] === ' ') {
          decision ??= rest as Decision;
          continue;
        }
        yield { ...(JSON.parse(rest) as Entry), decision, length: line.length };
        decision = undefined;
      }
    },
  };
}
