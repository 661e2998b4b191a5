import { encodeReference, type ObjectReference } from '../domain/objects.ts';
import type { Store } from './scripts.ts';

/** Puts an object into the organization's catalogue, or gives it another URL; every profile follows at once. */
export async function setObject(
  store: Store,
  base: string,
  reference: ObjectReference,
  url: string,
): Promise<'set' | 'unknown-organization'> {
  return await store.setObject(base, encodeReference(reference), url);
}

/** Puts an object into a user's collection; `present` where it was in it. */
export async function addToCollection(
  store: Store,
  base: string,
  userId: string,
  reference: ObjectReference,
): Promise<'added' | 'present' | 'unknown-organization'> {
  return await store.addToCollection(base, userId, encodeReference(reference));
}
