import { script } from '../connection/script-loader.ts';

/**
 * Puts an object, by its encoded reference, into the organization's catalogue, or gives it another URL; every profile
 * follows at once.
 */
export const setObject = script<[reference: string, url: string], null>('object/set');

/** Puts an object into a user's collection; `present` if it already was in it. */
export const addToCollection = script<[user: string, reference: string], 'added' | 'present'>(
  'object/add_to_collection',
);

/**
 * Links a wallet to a user in place of any other, verified (`w`) or not (`wu`); only a verified one is ever shown
 * (contract 2.1). A user without a profile gets one.
 */
export const setWallet = script<[user: string, address: string, field: 'w' | 'wu'], null>(
  'profile/set_wallet',
);
