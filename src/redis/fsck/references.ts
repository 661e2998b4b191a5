import { decodeReference, encodeReference } from '../../domain/profile.ts';
import { nameFault } from '../../domain/usernames.ts';
import { scanMembers, scanPairs } from '../connection/scan.ts';
import { collectionKey, objectsKey } from '../keys.ts';
import { hasType, quote, removeField, type Check } from './check.ts';

/** Whether `encodeReference` can have written this: two ids. */
export function isReference(encoded: string): boolean {
  const { datasourceId, objectDefinitionId } = decodeReference(encoded);
  return (
    nameFault(datasourceId) === undefined &&
    nameFault(objectDefinitionId) === undefined &&
    encodeReference({ datasourceId, objectDefinitionId }) === encoded
  );
}

/** Checks that the catalogue's references can be read. */
export async function checkObjects({ store, base, counts, report }: Check): Promise<void> {
  const key = objectsKey(base);
  for await (const page of scanPairs(store, key)) {
    counts.references += page.length;
    for (const [reference, url] of page) {
      if (isReference(reference)) continue;
      const detail = `object ${quote(reference)} of the catalogue cannot be read`;
      await report('reference-unreadable', detail, removeField(key, reference, url));
    }
  }
}

/** Checks that the references in a user's collection can be read. */
export async function checkCollection(check: Check, userId: string): Promise<void> {
  const { store, base, counts, report } = check;
  const key = collectionKey(base, userId);
  if (!(await hasType(check, key, 'set'))) return;
  for await (const members of scanMembers(store, key)) {
    counts.references += members.length;
    for (const reference of members) {
      if (isReference(reference)) continue;
      const detail = `reference ${quote(reference)} in the collection of user ${quote(userId)} cannot be read`;
      await report('reference-unreadable', detail, {
        expect: [[1, 'sismember', key, reference]],
        commands: [['srem', key, reference]],
        audit: ['removed', key, 'field', reference, 'value', ''],
      });
    }
  }
}
