import { InvalidArgumentError, type Command } from 'commander';
import type { RedisClient } from '../../../redis/connection/client.ts';
import { apiKeyIdsKey, organizationBase } from '../../../redis/keys.ts';
import { listOrganizations } from '../../../redis/organizations.ts';
import { parseId, parseTime } from '../options.ts';
import { yieldingChunks } from '../../../lib/time-slices.ts';

/** An exemption as the command line gives it, at first without its end (ms). */
export type GivenExemption = ({ organizationId: string } | { keyId: string }) & { until?: number };

/**
 * Adds `--exempt-org`, `--exempt-key` and `--until`, whose order matters: an `--until` applies to all exemptions before
 * it that have none yet. The list is filled while the command line is parsed.
 */
export function addExemptionOptions(command: Command): GivenExemption[] {
  const exemptions: GivenExemption[] = [];
  command
    .option(
      '--exempt-org <organization>',
      'organization exempt from brownouts and sunset; repeatable',
      (text) => exemptions.push({ organizationId: parseId(text) }),
    )
    .option(
      '--exempt-key <key-id>',
      'public id of a key exempt from brownouts and sunset; repeatable',
      (text) => exemptions.push({ keyId: parseId(text) }),
    )
    .option(
      '--until <time>',
      'end of the --exempt-org and --exempt-key options before it that have none yet, ISO 8601',
      (text) => {
        const until = parseTime(text);
        const endless = exemptions.filter((exemption) => exemption.until === undefined);
        if (endless.length === 0) {
          throw new InvalidArgumentError('It must follow the --exempt-org or --exempt-key that it ends.');
        }
        for (const exemption of endless) exemption.until = until;
      },
    );
  return exemptions;
}

/** Organizations asked about a key at once. */
const atOnce = 500;

/** The exemptions of organizations and keys that do not exist (yet). */
export async function findUnknown(
  client: RedisClient,
  prefix: string,
  exemptions: readonly GivenExemption[],
): Promise<GivenExemption[]> {
  const organizations = await listOrganizations(client, prefix);
  const keyExists = async (keyId: string): Promise<boolean> => {
    for await (const some of yieldingChunks(organizations, atOnce)) {
      const keys = some.map((id) => apiKeyIdsKey(organizationBase(prefix, id)));
      const found = await Promise.all(keys.map((key) => client.hexists(key, keyId)));
      if (found.includes(1)) return true;
    }
    return false;
  };
  const unknown: GivenExemption[] = [];
  for (const exemption of exemptions) {
    const exists =
      'keyId' in exemption
        ? await keyExists(exemption.keyId)
        : organizations.includes(exemption.organizationId);
    if (!exists) unknown.push(exemption);
  }
  return unknown;
}
