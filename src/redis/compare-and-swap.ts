import { script } from './connection/script-loader.ts';

/**
 * Replaces the text of a key, '' for none, if it is the expected one; returns the text that it found. Takes, renews and
 * releases locks, too. Does not expire if `expiresMs` is 0.
 */
export const compareAndSwap = script<[expected: string, wanted: string, expiresMs: number], string>(
  'compare_and_swap',
);
