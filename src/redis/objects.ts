import { encodeReference, type ObjectReference } from '../domain/profile.ts';
import type { RedisClient } from './connection/client.ts';
import { script } from './connection/script-loader.ts';

const set = script<[reference: string, url: string], 'set' | 'unknown-organization'>('object/set');

const add = script<[user: string, reference: string], 'added' | 'present' | 'unknown-organization'>(
  'object/add_to_collection',
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

/** Puts an object into a user's collection; `present` where it was in it. */
export async function addToCollection(
  store: RedisClient,
  base: string,
  userId: string,
  reference: ObjectReference,
): Promise<'added' | 'present' | 'unknown-organization'> {
  return await add(store, base, userId, encodeReference(reference));
}
