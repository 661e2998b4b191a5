import { expect, test } from '@jest/globals';
import { firstFew } from '../../../src/lib/collections/first-few.ts';

test('of more than five names, the first five are shown', () => {
  expect(firstFew([])).toBe('');
  expect(firstFew(['a', 'b', 'c', 'd', 'e'])).toBe('a, b, c, d, e');
  expect(firstFew(['a', 'b', 'c', 'd', 'e', 'f', 'g'])).toBe('a, b, c, d, e, …');
});
