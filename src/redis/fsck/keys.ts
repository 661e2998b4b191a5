import { apiKeyIdsKey, apiKeyKey } from '../keys.ts';
import { scanPairs } from '../connection/scan.ts';
import { quote, tell, type Check } from './check.ts';

/** Proves that an API key's record is whole, and that it is listed under its public id. */
export async function checkKeyRecord(check: Check, sha256: string): Promise<void> {
  const { store, base } = check;
  const key = apiKeyKey(base, sha256);
  const type = await store.type(key);
  if (type === 'none') return;
  if (type !== 'hash') return await tell(check, 'wrong-type', `${quote(key)} is no hash: remove it`);
  check.counts.apiKeys++;
  const [id, role, expires] = await store.hmget(key, 'i', 'r', 'e');
  if (id === null || id === undefined) {
    return await tell(check, 'key-invalid', `${quote(key)} has no public id (field i): remove it`);
  }
  if (role !== 'player' && role !== 'admin') {
    const detail = `key ${id} has role ${quote(role ?? '')}, so counts as a player's: set field r of ${quote(key)} to player or admin`;
    await tell(check, 'key-invalid', detail);
  }
  if (expires !== null && expires !== undefined && !/^\d+$/.test(expires)) {
    const detail = `key ${id} expires at ${quote(expires)}, which is no time: revoke it, or correct field e of ${quote(key)}`;
    await tell(check, 'key-invalid', detail);
  }
  const list = apiKeyIdsKey(base);
  const listType = await store.type(list);
  // A list of the wrong type is told by itself.
  if (listType !== 'hash' && listType !== 'none') return;
  if ((await store.hget(list, id)) === sha256) return;
  await tell(
    check,
    'key-not-listed',
    `key ${id} is not in the list of keys, or under another key's id, so it cannot be revoked`,
    async () => await store.fsckLinkKey(base, sha256),
  );
}

/** Proves that every listed API key has a record of that public id. */
export async function checkKeyList(check: Check): Promise<void> {
  const { store, base } = check;
  for await (const page of scanPairs(store, apiKeyIdsKey(base))) {
    const ids = await Promise.all(page.map(([, sha256]) => idIn(check, sha256)));
    for (const [position, [id, sha256]] of page.entries()) {
      if (ids[position] === id) continue;
      await tell(
        check,
        'key-list-stale',
        `the list of keys has ${quote(id)}, of which there is no record`,
        async () => store.fsckDrop(base, 'hash', apiKeyIdsKey(base), id, sha256),
      );
    }
  }
}

async function idIn({ store, base }: Check, sha256: string): Promise<string | null> {
  const key = apiKeyKey(base, sha256);
  return (await store.type(key)) === 'hash' ? await store.hget(key, 'i') : null;
}
