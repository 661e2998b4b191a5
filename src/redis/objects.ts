import { encodeReference, type ObjectReference } from '../domain/profile.ts';
import type { RedisClient } from './connection/client.ts';
import type { ScriptCommand, ScriptFiles } from './connection/script-loader.ts';

export interface ObjectScripts {
  setObject: ScriptCommand<[reference: string, url: string], 'set' | 'unknown-organization'>;
  addToCollection: ScriptCommand<
    [user: string, reference: string],
    'added' | 'present' | 'unknown-organization'
  >;
}

type ObjectStore = RedisClient & ObjectScripts;

export const objectScripts: ScriptFiles<ObjectScripts> = {
  setObject: 'object/set',
  addToCollection: 'object/add_to_collection',
};

/** Puts an object into the organization's catalogue, or gives it another URL; every profile follows at once. */
export async function setObject(
  store: ObjectStore,
  base: string,
  reference: ObjectReference,
  url: string,
): Promise<'set' | 'unknown-organization'> {
  return await store.setObject(base, encodeReference(reference), url);
}

/** Puts an object into a user's collection; `present` where it was in it. */
export async function addToCollection(
  store: ObjectStore,
  base: string,
  userId: string,
  reference: ObjectReference,
): Promise<'added' | 'present' | 'unknown-organization'> {
  return await store.addToCollection(base, userId, encodeReference(reference));
}
