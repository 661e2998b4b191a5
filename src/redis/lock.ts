import { script } from './connection/script-loader.ts';

/**
 * Takes, keeps or gives back a lock: if the key holds what is expected ('' for
 * nothing), from now on it holds what is wanted ('' to give it back), otherwise the owner is returned.
 */
export const changeLock = script<
  [expected: string, wanted: string, leaseMs: number],
  ['done'] | ['held', owner: string]
>('lock');
