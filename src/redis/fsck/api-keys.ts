import { scanPairs } from '../connection/scan.ts';
import { apiKeyIdsKey, apiKeyKey } from '../keys.ts';
import { hasType, isStoredTime, ofRightType, quote, removeField, type Check, type Repair } from './check.ts';

/** Checks that an API key's record is whole, and that it is listed under its public id. */
export async function checkKeyRecord(check: Check, sha256: string): Promise<void> {
  const { store, base, report } = check;
  const key = apiKeyKey(base, sha256);
  if (!(await hasType(check, key, 'hash'))) return;
  check.counts.apiKeys++;
  const { i: id, r: role, t, e, x } = await store.hgetall(key);
  if (id === undefined) {
    await report('key-invalid', `${quote(key)} has no public id (field i): remove it`);
    return;
  }
  if (role !== 'player' && role !== 'admin') {
    const detail = `key ${id} has role ${quote(role ?? '')}, so it counts as a player's: set field r of ${quote(key)} to player or admin`;
    await report('key-invalid', detail);
  }
  for (const [field, time] of Object.entries({ t, e, x })) {
    if (time === undefined || isStoredTime(time)) continue;
    const detail = `key ${id} has ${quote(time)} for a time: revoke it, or correct field ${field} of ${quote(key)}`;
    await report('key-invalid', detail);
  }
  // It may be changed meanwhile, perhaps by another repair of this very check.
  for (let attempt = 1; attempt <= attempts; attempt++) if (await checkListed(check, id, sha256)) return;
}

/** How often a key that is changing all the time is looked at. */
const attempts = 10;

/** False if it was changed meanwhile. */
async function checkListed({ store, base, report }: Check, id: string, sha256: string): Promise<boolean> {
  const list = apiKeyIdsKey(base);
  const listed = await ofRightType(store.hget(list, id));
  if (listed === undefined || listed === sha256) return true;
  // It is unknown which of them was meant.
  if (listed !== null && (await ofRightType(store.hget(apiKeyKey(base, listed), 'i'))) === id) {
    const [one, other] = [sha256, listed].map((hash) => quote(apiKeyKey(base, hash)));
    const shared = `${one} and ${other} have the same public id ${id}, so only one of them can be revoked`;
    return await report('key-not-listed', `${shared}: remove the one that was not meant`);
  }
  const detail = `key ${id} is missing from the list of keys, or listed for another key, so it cannot be revoked`;
  const link: Repair = {
    expect: [
      [id, 'hget', apiKeyKey(base, sha256), 'i'],
      [listed ?? false, 'hget', list, id],
    ],
    commands: [['hset', list, id, sha256]],
  };
  return await report('key-not-listed', detail, link);
}

/** Checks that every listed API key has a record with that public id. */
export async function checkKeyList({ store, base, report }: Check): Promise<void> {
  const list = apiKeyIdsKey(base);
  for await (const page of scanPairs(store, list)) {
    for (const [id, sha256] of page) {
      if ((await ofRightType(store.hget(apiKeyKey(base, sha256), 'i'))) === id) continue;
      const detail = `the list of keys has ${quote(id)}, for which there is no record`;
      await report('key-list-stale', detail, removeField(list, id, sha256));
    }
  }
}
