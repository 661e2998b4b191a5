import { expect, test } from '@jest/globals';
import { createSeen } from '../../../src/lib/bounded-memory/seen.ts';

/** The keys, none of which occurs twice, that are taken for seen all the same: with seed 7, one. */
function takenForSeen(seed: number): number[] {
  const seen = createSeen(seed);
  return Array.from({ length: 650_000 }, (_, at) => at).filter((at) => seen.add('users', `user-${at}`));
}

test('the same seed takes the same keys for seen, another one takes others', () => {
  const first = takenForSeen(7);
  expect(first).not.toEqual([]);
  expect(takenForSeen(7)).toEqual(first);
  expect(takenForSeen(8)).not.toEqual(first);
});

test('a key that was added is always recognized, and hardly any other', () => {
  const seen = createSeen();
  expect(seen.isEmpty).toBe(true);
  // More than the first filter takes.
  const count = 300_000;
  let mistaken = 0;
  for (let at = 0; at < count; at += 1) if (seen.add('profiles acme', String(at))) mistaken += 1;
  for (let at = 0; at < count; at += 1) {
    const key = String(at);
    const isRecognized = seen.has('profiles acme', key) && seen.add('profiles acme', key);
    if (!isRecognized) throw new Error(`${at} is not recognized`);
    if (seen.has('profiles other', key)) mistaken += 1;
  }
  expect(mistaken).toBeLessThan(3);
  expect(seen.has('profiles acm', 'e0')).toBe(false);
});
