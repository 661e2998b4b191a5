import { decodeReference, encodeReference } from '../../domain/profile.ts';
import { nameFault } from '../../domain/usernames.ts';
import { scanMembers, scanPairs } from '../connection/scan.ts';
import { collectionKey, objectsKey } from '../keys.ts';
import { hasType, quote, removeField, type Check, type Repair } from './check.ts';

/** Counts a reference, and reports `what` it is unless `encodeReference` can have written it: two ids. */
export async function checkReference(
  { counts, report }: Check,
  reference: string,
  what: string,
  repair: Repair,
): Promise<void> {
  counts.references++;
  const ids = decodeReference(reference);
  const faults = [nameFault(ids.datasourceId), nameFault(ids.objectDefinitionId)];
  if (faults.every((fault) => fault === undefined) && encodeReference(ids) === reference) return;
  await report('reference-unreadable', `${what} cannot be read`, repair);
}

/** Checks that the catalogue's references can be read. */
export async function checkObjects(check: Check): Promise<void> {
  const key = objectsKey(check.base);
  for await (const page of scanPairs(check.store, key)) {
    for (const [reference, url] of page) {
      const what = `object ${quote(reference)} of the catalogue`;
      await checkReference(check, reference, what, removeField(key, reference, url));
    }
  }
}

/** Checks that the references in a user's collection can be read. */
export async function checkCollection(check: Check, userId: string): Promise<void> {
  const key = collectionKey(check.base, userId);
  if (!(await hasType(check, key, 'set'))) return;
  for await (const members of scanMembers(check.store, key)) {
    for (const reference of members) {
      const what = `reference ${quote(reference)} in the collection of user ${quote(userId)}`;
      await checkReference(check, reference, what, {
        expect: [[1, 'sismember', key, reference]],
        commands: [['srem', key, reference]],
        audit: ['removed', key, 'field', reference, 'value', ''],
      });
    }
  }
}
