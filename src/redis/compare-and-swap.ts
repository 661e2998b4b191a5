import { script } from './connection/script-loader.ts';

/**
 * Sets a key, if its value is the expected one, and returns the value that it had; '' is none. So locks are taken,
 * renewed and released, also where Redis is full. The value does not expire if `expiresMs` is 0.
 */
export const compareAndSwap = script<[expected: string, wanted: string, expiresMs: number], string>(
  'compare_and_swap',
);
