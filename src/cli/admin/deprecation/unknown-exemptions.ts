import type { Exempt } from '../../../deprecation/policy/policy.ts';
import type { RedisClient } from '../../../redis/connection/client.ts';
import { apiKeyIdsKey, organizationBase } from '../../../redis/keys.ts';
import { listOrganizations } from '../../../redis/organizations.ts';
import { yieldingChunks } from '../../../lib/time-slices.ts';

/** Organizations asked about a key at once. */
const atOnce = 500;

/** Those exempt organizations and keys that do not exist (yet). */
export async function findUnknown(
  store: RedisClient,
  prefix: string,
  exempt: readonly Exempt[],
): Promise<Exempt[]> {
  const organizations = await listOrganizations(store, prefix);
  const keyExists = async (keyId: string): Promise<boolean> => {
    for await (const some of yieldingChunks(organizations, atOnce)) {
      const keys = some.map((id) => apiKeyIdsKey(organizationBase(prefix, id)));
      const found = await Promise.all(keys.map((key) => store.hexists(key, keyId)));
      if (found.includes(1)) return true;
    }
    return false;
  };
  const unknown: Exempt[] = [];
  for (const one of exempt) {
    const exists = 'keyId' in one ? await keyExists(one.keyId) : organizations.includes(one.organizationId);
    if (!exists) unknown.push(one);
  }
  return unknown;
}
