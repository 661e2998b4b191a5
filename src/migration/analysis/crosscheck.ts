import { createFingerprintSet, type FingerprintSet } from './fingerprint-set.ts';
import { createMarks } from './marks.ts';
import { createSorter } from './sorter.ts';
import type { Workspace } from './workspace.ts';

/** What a crosscheck looks for among keys of organizations, each of which may stand on two sides. */
export type Question =
  /** Keys that stand on side `a` more than once; a few others may come with them. */
  | 'repeated'
  /** Keys on both sides. */
  | 'shared'
  /** Keys on side `b` alone. */
  | 'missing';

export type Side = 'a' | 'b';

/** A record whose key was asked for. Those of one key come together, in the order of their sequence numbers. */
export interface Found {
  organizationId: string;
  key: string;
  /** Whether it is the first one of its key. */
  isFirst: boolean;
  seq: number;
  payload: unknown;
}

/**
 * Finds keys among any number of records in two readings of them: the first notes a fingerprint of each, the second
 * collects those few whose fingerprint answers the question, and compares them exactly.
 */
export interface Crosscheck {
  /** First reading: the fingerprint of an organization and a key. */
  note: (side: Side, fingerprint: number) => void;
  /** Between the readings: whether there is anything to collect. */
  settle: () => boolean;
  /** Second reading: whether the key may be among those asked for. */
  concerns: (fingerprint: number) => boolean;
  collect: (side: Side, organizationId: string, key: string, seq: number, payload: unknown) => Promise<void>;
  /** After the second reading: the records whose keys were asked for, of side `b` unless `repeated` was asked. */
  found: () => AsyncGenerator<Found>;
}

const separator = '\u0001';

/** A crosscheck for one question. What stands on a side that is not asked for is not noted. */
export function createCrosscheck(
  workspace: Workspace,
  question: Question,
  isAsked: (side: Side) => boolean = () => true,
): Crosscheck {
  const sides: Record<Side, FingerprintSet> = {
    a: createFingerprintSet(workspace),
    b: createFingerprintSet(workspace),
  };
  const marks = createMarks();
  const sorter = createSorter(workspace);

  return {
    note: (side, fingerprint) => {
      if (isAsked(side)) sides[side].add(fingerprint);
    },
    settle: () => {
      if (question === 'repeated') sides.a.markRepeated(marks);
      else if (question === 'shared') sides.a.markShared(sides.b, marks);
      else sides.b.markMissingIn(sides.a, marks);
      sides.a.close();
      sides.b.close();
      return !marks.isEmpty;
    },
    concerns: (fingerprint) => marks.has(fingerprint),
    collect: async (side, organizationId, key, seq, payload) => {
      const order = String(seq).padStart(16, '0');
      // References hold the one control character that lines must not.
      const line = [organizationId, key.replace('\n', '\u0002'), side, order, JSON.stringify(payload)];
      await sorter.add(line.join(separator));
    },
    found: async function* () {
      let group = '';
      let hasA = false;
      let isFirst = true;
      for await (const line of sorter.sorted()) {
        const [organizationId = '', key = '', side, order, ...payload] = line.split(separator);
        const own = organizationId + separator + key;
        if (own !== group) {
          group = own;
          hasA = false;
          isFirst = true;
        }
        if (side === 'a') hasA = true;
        const isFound =
          question === 'repeated' ? side === 'a' : side === 'b' && hasA === (question === 'shared');
        if (isFound) {
          const seq = Number(order);
          const json = payload.join(separator);
          yield { organizationId, key: key.replace('\u0002', '\n'), isFirst, seq, payload: JSON.parse(json) };
          isFirst = false;
        }
      }
    },
  };
}
