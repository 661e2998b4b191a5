import type { RedisClient } from '../../redis/connection/connect.ts';
import { apiKeyIdsKey, organizationBase, organizationsKey } from '../../redis/keys.ts';
import type { Exemption } from './policy-edits.ts';

const atOnce = 500;

/** The exemptions of organizations and keys that do not exist (yet). */
export async function findUnknownExemptions(
  client: RedisClient,
  prefix: string,
  exemptions: readonly Exemption[],
): Promise<Exemption[]> {
  const registry = organizationsKey(prefix);
  const organizations = exemptions.some((exemption) => 'keyId' in exemption)
    ? await client.smembers(registry)
    : [];
  const unknown: Exemption[] = [];
  for (const exemption of exemptions) {
    const found =
      'keyId' in exemption
        ? await someHasKey(client, prefix, organizations, exemption.keyId)
        : (await client.sismember(registry, exemption.organizationId)) === 1;
    if (!found) unknown.push(exemption);
  }
  return unknown;
}

async function someHasKey(
  client: RedisClient,
  prefix: string,
  organizations: readonly string[],
  keyId: string,
): Promise<boolean> {
  for (let i = 0; i < organizations.length; i += atOnce) {
    const some = organizations.slice(i, i + atOnce);
    const replies = await Promise.all(
      some.map((id) => client.hexists(apiKeyIdsKey(organizationBase(prefix, id)), keyId)),
    );
    if (replies.includes(1)) return true;
  }
  return false;
}
