import { expect, test } from '@jest/globals';
import { createSeen } from '../../../src/migration/analysis/seen.ts';

/** The keys, none of which occurs twice, that are taken for seen all the same. */
function takenForSeen(seed: number): number[] {
  const seen = createSeen(seed);
  return Array.from({ length: 3_000_000 }, (_, at) => at).filter((at) => seen.add('users', `user-${at}`));
}

test('the same seed takes the same keys for seen, another one takes others', () => {
  const first = takenForSeen(7);
  expect(first).not.toEqual([]);
  expect(takenForSeen(7)).toEqual(first);
  expect(takenForSeen(8)).not.toEqual(first);
});

test('a key that was added is always recognized', () => {
  const seen = createSeen();
  const keys = Array.from({ length: 300_000 }, (_, at) => `key-${at}`);
  for (const key of keys) seen.add('users', key);
  expect(keys.every((key) => seen.has('users', key) && seen.add('users', key))).toBe(true);
});
