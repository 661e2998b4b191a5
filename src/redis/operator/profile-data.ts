import { encodeReference, type ObjectReference } from '../../domain/profile.ts';
import type { RedisClient } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';

const set = script<[reference: string, url: string], 'set' | 'unknown-organization'>('object/set');

const add = script<[user: string, reference: string], 'added' | 'present' | 'unknown-organization'>(
  'object/add_to_collection',
);

const linkWallet = script<[user: string, address: string, field: 'w' | 'wu'], 'set' | 'unknown-organization'>(
  'profile/set_wallet',
);

/** Puts an object into the organization's catalogue, or gives it another URL; every profile follows at once. */
export async function setObject(
  store: RedisClient,
  base: string,
  reference: ObjectReference,
  url: string,
): Promise<'set' | 'unknown-organization'> {
  return await set(store, base, encodeReference(reference), url);
}

/** Puts an object into a user's collection; `present` if it already was in it. */
export async function addToCollection(
  store: RedisClient,
  base: string,
  userId: string,
  reference: ObjectReference,
): Promise<'added' | 'present' | 'unknown-organization'> {
  return await add(store, base, userId, encodeReference(reference));
}

/**
 * Links a wallet to a user in place of any other; only a verified one is ever shown (contract 2.1). A user
 * without a profile gets one.
 */
export async function setWallet(
  store: RedisClient,
  base: string,
  userId: string,
  wallet: { address: string; isVerified: boolean },
): Promise<'set' | 'unknown-organization'> {
  return await linkWallet(store, base, userId, wallet.address, wallet.isVerified ? 'w' : 'wu');
}
