import { decodeReference, encodeReference } from '../../domain/objects.ts';
import { nameFault } from '../../domain/usernames.ts';
import { collectionKey, objectsKey } from '../keys.ts';
import { scanMembers, scanPairs } from '../connection/scan.ts';
import { quote, tell, type Check } from './check.ts';

/** Whether `encodeReference` can have written this: two ids. */
export function isReference(encoded: string): boolean {
  const { datasourceId, objectDefinitionId } = decodeReference(encoded);
  return (
    nameFault(datasourceId) === undefined &&
    nameFault(objectDefinitionId) === undefined &&
    encodeReference({ datasourceId, objectDefinitionId }) === encoded
  );
}

/** Proves that the catalogue's references can be read. */
export async function checkObjects(check: Check): Promise<void> {
  const { store, base } = check;
  for await (const page of scanPairs(store, objectsKey(base))) {
    check.counts.references += page.length;
    for (const [reference, url] of page) {
      if (isReference(reference)) continue;
      const detail = `object ${quote(reference)} of the catalogue cannot be read`;
      await tell(check, 'reference-unreadable', detail, async () =>
        store.fsckDrop(base, 'hash', objectsKey(base), reference, url),
      );
    }
  }
}

/** Proves that the references in a user's collection can be read. */
export async function checkCollection(check: Check, userId: string): Promise<void> {
  const { store, base } = check;
  const key = collectionKey(base, userId);
  const type = await store.type(key);
  if (type === 'none') return;
  if (type !== 'set') return await tell(check, 'wrong-type', `${quote(key)} is no set: remove it`);
  for await (const members of scanMembers(store, key)) {
    check.counts.references += members.length;
    for (const reference of members) {
      if (isReference(reference)) continue;
      const detail = `reference ${quote(reference)} in the collection of user ${quote(userId)} cannot be read`;
      await tell(check, 'reference-unreadable', detail, async () =>
        store.fsckDrop(base, 'set', key, reference, ''),
      );
    }
  }
}
