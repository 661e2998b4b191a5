import { firstFew } from '../../lib/collections/first-few.ts';
import { counted } from '../../lib/numbers.ts';
import { readWriteSnapshot } from '../../redis/changes.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';
import {
  claimsKey,
  forwardedOrganizationsKey,
  gapsKey,
  organizationBase,
  unsettledKey,
} from '../../redis/keys.ts';
import { countHoldings, organizationsInBatches } from '../../redis/organizations.ts';

const lookForStaleName = script<
  [index: string, cursor: string, snapshotAt: number],
  [cursor: string, name: string]
>('cutover/stale_name');

/** What a verify has compared, and when the source was as it was read, ms by the store's clock. */
interface Compared {
  entities: readonly string[];
  organizations: ReadonlySet<string>;
  snapshotAt: number;
}

/**
 * Why a clean verify does not count for the cut-over, and what to do. It must have compared the profiles of every
 * organization that was migrated, or whose requests were forwarded, and the denylists if there are any; and no user may
 * have come from the source with a name that was banned since. Undefined if it counts.
 */
export async function findOmission(
  store: RedisClient,
  prefix: string,
  { entities, organizations, snapshotAt }: Compared,
): Promise<string | undefined> {
  if (!entities.includes('profiles')) return 'the source has no profiles: verify a source that has them';
  const inUse = await organizationsInUse(store, prefix);
  const omitted = inUse.filter((id) => !organizations.has(id));
  if (omitted.length > 0) {
    const named = firstFew(omitted);
    return `the source does not have ${counted(omitted.length, 'organization')} in use (${named}): verify a source that has a record of each, if only in organizations`;
  }
  for (const id of inUse) {
    const base = organizationBase(prefix, id);
    if (!entities.includes('denylist') && (await hasDenylist(store, base)))
      return `the source has no denylist, and ${id} has one here: verify a source with denylists, even if they are empty`;
    const name = await findStaleName(store, base, snapshotAt);
    if (name !== undefined)
      return `in ${id} a user has the name ${JSON.stringify(name)}, which was banned after the source was read or exported: apply and verify the source as it is now`;
  }
  return undefined;
}

/** Those that were migrated, or whose requests were forwarded, in order. */
async function organizationsInUse(store: RedisClient, prefix: string): Promise<string[]> {
  const inUse = new Set(await store.smembers(forwardedOrganizationsKey(prefix)));
  for await (const ids of organizationsInBatches(store, prefix)) {
    const claims = await Promise.all(ids.map((id) => store.exists(claimsKey(organizationBase(prefix, id)))));
    for (const [at, id] of ids.entries()) if (claims[at] === 1) inUse.add(id);
  }
  return [...inUse].sort();
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

/** A name that a user has although its ban was adopted after the snapshot. */
async function findStaleName(
  store: RedisClient,
  base: string,
  snapshotAt: number,
): Promise<string | undefined> {
  const { index } = await readWriteSnapshot(store, base);
  let [cursor, name] = ['0', ''];
  do [cursor, name] = await lookForStaleName(store, base, index, cursor, snapshotAt);
  while (cursor !== '0' && name === '');
  return name === '' ? undefined : name;
}
