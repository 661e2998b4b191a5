import { describe, expect, test } from '@jest/globals';
import { median, ratio } from '../../../../scripts/bench/report/stats.ts';

describe('the ratio of two things measured in turn', () => {
  test('is the median of the ratios of the rounds', () => {
    // The machine was half as fast in the second round: for both.
    expect(ratio([20, 10, 22], [10, 5, 10])).toEqual({ median: 2, min: 2, max: 2.2, meaningful: true });
  });

  test('is not meaningful if the rounds disagree, or if there are none', () => {
    expect(ratio([10, 20, 17], [10, 10, 10]).meaningful).toBe(false);
    expect(ratio([10], [0]).meaningful).toBe(false);
    expect(ratio([], []).meaningful).toBe(false);
  });

  test('is meaningful despite one disturbed round of seven, but not despite three', () => {
    const calm = [10, 10, 10, 10, 10, 10, 10];
    expect(ratio([20, 20, 20, 20, 20, 20, 5], calm)).toMatchObject({ median: 2, meaningful: true });
    expect(ratio([20, 20, 20, 20, 5, 5, 5], calm).meaningful).toBe(false);
  });
});

test('the median of an even number of values is the mean of the middle two', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
});
