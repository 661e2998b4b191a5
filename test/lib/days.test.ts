import { describe, expect, test } from '@jest/globals';
import { dayMs, dayName, dayOf, durationText, hourMs, minuteMs, relativeTime } from '../../src/lib/days.ts';

test('dayName formats the UTC day of an instant', () => {
  expect(dayName(dayOf(Date.UTC(2027, 2, 31, 23, 59, 59, 999)))).toBe('2027-03-31');
});

describe('a duration in words', () => {
  test.each([
    [1, '1 minute'],
    [60, '1 hour'],
    [150, '2 hours 30 minutes'],
    [24 * 60, '24 hours'],
    [48 * 60, '2 days'],
    [57 * 60 + 59, '2 days 9 hours'],
  ])('of %i minutes', (minutes, expected) => {
    expect(durationText(minutes)).toBe(expected);
  });
});

describe('a time relative to now', () => {
  test.each([
    [-30_000, 'just now'],
    [0, 'just now'],
    [30_000, 'in a moment'],
    [-90 * minuteMs, '90 minutes ago'],
    [-24 * hourMs, '24 hours ago'],
    [-10.5 * dayMs, '10 days ago'],
    [2.5 * dayMs, 'in 3 days'],
  ])('of %i ms', (ms, expected) => {
    expect(relativeTime(ms)).toBe(expected);
  });
});
