import { describe, expect, test } from '@jest/globals';
import { finished } from '../../../src/migration/engine/round.ts';
import type { RoundState } from '../../../src/migration/runs/runs.ts';

const T = 1_700_000_000_000;
const round: RoundState = {
  source: 'legacy',
  fingerprint: '',
  selection: '',
  onConflict: 'skip',
  startedAt: T,
  refused: 0,
  readAll: 0,
  settled: 0,
  entities: {},
};
const all = { newest: 0, refused: 0, settledUntil: Number.POSITIVE_INFINITY, isFull: true, isDue: true };

describe('a round that has done everything', () => {
  test('has seen changes up to its beginning at most, however late an updatedAt is', () => {
    expect(finished(round, { ...all, newest: T - 1 }).highWater).toBe(T - 1);
    expect(finished(round, { ...all, newest: 2 * T }).highWater).toBe(T);
  });

  test('has seen only what is settled in the source', () => {
    expect(finished(round, { ...all, newest: T - 1, settledUntil: T - 60_000 }).highWater).toBe(T - 60_000);
  });

  test('has seen at least as much as the one before', () => {
    expect(finished({ ...round, highWater: T - 1 }, { ...all, newest: 1 }).highWater).toBe(T - 1);
  });

  test('has as refused also what it has not read again', () => {
    const before = { ...round, refused: 2 };
    expect(finished({ ...before, since: T - 1 }, { ...all, refused: 1, isFull: false }).refused).toBe(2);
    expect(finished(before, { ...all, refused: 1 }).refused).toBe(1);
  });
});
