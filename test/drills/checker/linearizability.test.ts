import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  checkLinearizability,
  type Model,
  type Operation,
} from '../../../scripts/drills/checker/linearizability.ts';

type Access = { write: number } | 'read';

/** One number that is written and read, 0 at first. */
const register: Model<number, Access> = {
  initial: 0,
  key: String,
  isObservation: (input) => input === 'read',
  step: (value, input) =>
    input === 'read' ? [{ outcome: String(value), after: value }] : [{ outcome: 'ok', after: input.write }],
};

const read = (value: number, sentAt: number, answeredAt: number): Operation<Access> => ({
  input: 'read',
  outcome: String(value),
  sentAt,
  answeredAt,
});
const write = (value: number, sentAt: number, answeredAt: number): Operation<Access> => ({
  input: { write: value },
  outcome: 'ok',
  sentAt,
  answeredAt,
});
const lost = (value: number, sentAt: number): Operation<Access> => ({
  input: { write: value },
  outcome: undefined,
  sentAt,
  answeredAt: Infinity,
});

describe('linearizable', () => {
  test.each<[string, Operation<Access>[]]>([
    ['nothing at all', []],
    ['a read after a write', [write(1, 0, 1), read(1, 2, 3)]],
    ['a read beside a write sees it or not', [write(1, 0, 10), read(0, 1, 2), read(1, 3, 4)]],
    ['two writes at once, in either order', [write(1, 0, 9), write(2, 1, 8), read(1, 10, 11)]],
    ['a write whose answer was lost never happens', [lost(1, 0), read(0, 5, 6), read(0, 7, 8)]],
    ['a write whose answer was lost happens late', [lost(1, 0), read(0, 5, 6), read(1, 7, 8)]],
    [
      'of two writes whose answers were lost, the one sent last happens first',
      [lost(1, 0), lost(2, 1), read(2, 5, 6), read(1, 7, 8)],
    ],
  ])('%s', (_, history) => {
    expect(checkLinearizability(register, history)).toEqual({ kind: 'linearizable' });
  });
});

describe('not linearizable', () => {
  test.each<[string, Operation<Access>[]]>([
    ['a stale read', [write(1, 0, 1), read(0, 2, 3)]],
    ['a value that nobody wrote', [read(7, 0, 1)]],
    ['two readers who disagree about the order', [write(1, 0, 9), read(1, 1, 2), read(0, 3, 4)]],
    ['an acknowledged write that is undone', [write(1, 0, 1), write(2, 2, 3), read(2, 4, 5), read(1, 6, 7)]],
    ['a write that takes effect before it is sent', [read(1, 0, 1), lost(1, 2), read(1, 3, 4)]],
    ['a lost write that happens twice', [lost(1, 0), read(1, 1, 2), write(2, 3, 4), read(1, 5, 6)]],
  ])('%s', (_, history) => {
    expect(checkLinearizability(register, history).kind).toBe('violation');
  });

  test('the verdict names the answers that nothing explains, and the state before them', () => {
    const stale = read(0, 4, 5);
    expect(checkLinearizability(register, [write(1, 0, 1), read(1, 2, 3), stale])).toEqual({
      kind: 'violation',
      explained: 2,
      state: 1,
      stuck: [stale],
    });
  });
});

test('a search that takes too long is given up, and never counts as linearizable', () => {
  const writes = Array.from({ length: 12 }, (_, value) => write(value, value, 100));
  const verdict = checkLinearizability(register, [...writes, read(99, 101, 102)], 500);
  expect(verdict).toEqual({ kind: 'undecided', states: 500 });
});

/** Histories of operations that do take effect one after another, and whose intervals overlap around that instant. */
const recorded = fc
  .array(
    fc.record({
      input: fc.oneof(fc.constant<Access>('read'), fc.record({ write: fc.nat(3) })),
      before: fc.nat(30),
      after: fc.nat(30),
      isLost: fc.integer({ min: 0, max: 9 }).map((tenth) => tenth === 0),
    }),
    { maxLength: 40 },
  )
  .map((calls) => {
    let value = 0;
    return calls.map(({ input, before, after, isLost }, position): Operation<Access> => {
      const outcome = input === 'read' ? String(value) : 'ok';
      if (input !== 'read') value = input.write;
      const sentAt = position * 10 - before;
      if (isLost) return { input, outcome: undefined, sentAt, answeredAt: Infinity };
      return { input, outcome, sentAt, answeredAt: position * 10 + 1 + after };
    });
  });

test('every history that took effect in some order is found linearizable', () => {
  fc.assert(
    fc.property(recorded, (history) => {
      expect(checkLinearizability(register, history).kind).toBe('linearizable');
    }),
  );
});

test('the search has the same verdict as trying every order', () => {
  const few = recorded.filter((history) => history.length <= 6);
  const wrong = fc
    .tuple(few, fc.nat(5), fc.nat(3))
    .map(([history, position, value]) =>
      history.map((operation, at) =>
        at === position && operation.outcome !== undefined && operation.input === 'read'
          ? { ...operation, outcome: String(value) }
          : operation,
      ),
    );
  fc.assert(
    fc.property(wrong, (history) => {
      const { kind } = checkLinearizability(register, history);
      expect(kind).toBe(someOrderExplains(history, 0) ? 'linearizable' : 'violation');
    }),
    { numRuns: 300 },
  );
});

function someOrderExplains(left: readonly Operation<Access>[], value: number): boolean {
  if (left.every(({ outcome }) => outcome === undefined)) return true;
  return left.some((next, position) => {
    if (left.some((other) => other.answeredAt < next.sentAt)) return false;
    const step = register.step(value, next.input)[0];
    if (step === undefined || (next.outcome !== undefined && next.outcome !== step.outcome)) return false;
    return someOrderExplains(left.toSpliced(position, 1), step.after);
  });
}
