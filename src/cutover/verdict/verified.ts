import { counted } from '../../lib/numbers.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';
import {
  claimsKey,
  cutoverKey,
  forwardedOrganizationsKey,
  gapsKey,
  organizationBase,
  unsettledKey,
} from '../../redis/keys.ts';
import { countHoldings, organizationsInBatches } from '../../redis/organizations.ts';

type Recorded = 'unsettled' | 'differing' | 'failed' | 'lost-names' | 'gaps';

const clearVerified = script<[what: Recorded, cursor: string, openedAt: number], string>(
  'cutover/clear_verified',
);

/**
 * Why a clean verify does not count for the cut-over, and what to do: it must have compared the profiles of every
 * organization that was migrated, or whose requests were forwarded, and the denylists if there are any. Undefined if it
 * counts.
 */
export async function findOmission(
  store: RedisClient,
  prefix: string,
  compared: { entities: readonly string[]; organizations: ReadonlySet<string> },
): Promise<string | undefined> {
  if (!compared.entities.includes('profiles'))
    return 'the source has no profiles: verify a source that has them';
  const inUse = new Set(await store.smembers(forwardedOrganizationsKey(prefix)));
  for await (const ids of organizationsInBatches(store, prefix)) {
    const claims = await Promise.all(ids.map((id) => store.exists(claimsKey(organizationBase(prefix, id)))));
    for (const [at, id] of ids.entries()) if (claims[at] === 1) inUse.add(id);
  }
  const omitted = [...inUse].filter((id) => !compared.organizations.has(id)).sort();
  if (omitted.length > 0) {
    const named = [...omitted.slice(0, 5), ...(omitted.length > 5 ? ['…'] : [])].join(', ');
    return `the source does not have ${counted(omitted.length, 'organization')} in use (${named}): verify a source of all of them, which describes those without other records in its organizations`;
  }
  if (compared.entities.includes('denylist')) return undefined;
  for (const id of inUse) {
    if (await hasDenylist(store, organizationBase(prefix, id)))
      return `the source has no denylist, and ${id} has one here: verify a source with denylists, even if they are empty`;
  }
  return undefined;
}

/** Whether there are denied names, or changes of the denylist on record. */
async function hasDenylist(store: RedisClient, base: string): Promise<boolean> {
  const [{ deniedUsernames }, unsettled, gaps] = await Promise.all([
    countHoldings(store, base),
    store.hexists(unsettledKey(base), ''),
    store.hkeys(gapsKey(base)),
  ]);
  return deniedUsernames > 0 || unsettled === 1 || gaps.some((gap) => gap.startsWith('denylist-'));
}

/**
 * Records a verify that has found no difference, and removes what it has settled: everything on record from before its
 * snapshot was opened (`snapshotAt`, ms by the store's clock). `replicationIds` are those of Redis before anything was compared. If names that two
 * users have in the source were accepted, the records of users who lost theirs stay. Where no mode was ever stored,
 * nothing is recorded.
 */
export async function recordVerified(
  store: RedisClient,
  prefix: string,
  {
    snapshotAt,
    replicationIds,
    hasConflicts,
  }: { snapshotAt: number; replicationIds: string; hasConflicts: boolean },
): Promise<void> {
  const key = cutoverKey(prefix);
  if ((await store.hexists(key, 'mode')) === 0) return;
  const openedAt = Math.floor(snapshotAt);

  const recorded: Recorded[] = ['unsettled', 'differing', 'failed', 'gaps'];
  if (!hasConflicts) recorded.push('lost-names');
  for (const organizationId of await store.smembers(forwardedOrganizationsKey(prefix))) {
    const base = organizationBase(prefix, organizationId);
    for (const what of recorded) {
      let cursor = '0';
      do cursor = await clearVerified(store, base, what, cursor, openedAt);
      while (cursor !== '0');
    }
  }
  await store.hset(key, { verified: String(openedAt), 'verified-on': replicationIds });
}

/** Withdraws the clean verify on record, since a later one has found differences. */
export async function withdrawVerified(store: RedisClient, prefix: string): Promise<void> {
  await store.hdel(cutoverKey(prefix), 'verified', 'verified-on');
}
