import type { Exempt } from '../../../deprecation/policy/policy.ts';
import type { RedisClient } from '../../../redis/connection/client.ts';
import { apiKeyIdsKey, organizationBase } from '../../../redis/keys.ts';
import { listOrganizations } from '../../../redis/organizations.ts';

/** Those exempt organizations and keys that do not exist (yet). */
export async function findUnknown(
  store: RedisClient,
  prefix: string,
  exempt: readonly Exempt[],
): Promise<Exempt[]> {
  const organizations = await listOrganizations(store, prefix);
  const keyExists = async (keyId: string): Promise<boolean> => {
    const keys = organizations.map((id) => apiKeyIdsKey(organizationBase(prefix, id)));
    return (await Promise.all(keys.map((key) => store.hexists(key, keyId)))).includes(1);
  };
  const unknown: Exempt[] = [];
  for (const one of exempt) {
    const exists = 'keyId' in one ? await keyExists(one.keyId) : organizations.includes(one.organizationId);
    if (!exists) unknown.push(one);
  }
  return unknown;
}
