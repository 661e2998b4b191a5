import { authorityOf, isMode } from '../modes.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { cutoverKey, forwardedOrganizationsKey, organizationBase } from '../../redis/keys.ts';

type Recorded =
  'unsettled' | 'differing' | 'failed' | 'lost-names' | 'gaps' | 'denied-names' | 'refused-keys';

const clearVerified = script<[what: Recorded, cursor: string, openedAt: number], string>(
  'cutover/clear_verified',
);

/**
 * Records a verify that has found no difference, and removes what it has settled: everything on record from before its
 * snapshot was opened (`snapshotAt`, ms by the store's clock). `replicationIds` are those of Redis before anything was
 * compared. If names that two users have in the source were accepted, the records of users who lost theirs stay. If API
 * keys were compared, those that were answered 403 are marked as the source's. Where no mode was ever stored, nothing is
 * recorded.
 */
export async function recordVerified(
  store: RedisClient,
  prefix: string,
  {
    snapshotAt,
    replicationIds,
    hasConflicts,
    hasApiKeys = false,
  }: { snapshotAt: number; replicationIds: string; hasConflicts: boolean; hasApiKeys?: boolean },
): Promise<void> {
  const key = cutoverKey(prefix);
  if ((await store.hexists(key, 'mode')) === 0) return;
  const openedAt = Math.floor(snapshotAt);

  const recorded: Recorded[] = ['unsettled', 'differing', 'failed', 'gaps', 'denied-names'];
  if (!hasConflicts) recorded.push('lost-names');
  if (hasApiKeys) recorded.push('refused-keys');
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

/**
 * Withdraws the clean verify on record, as when a later one has found differences, and says whether there was one. Not
 * while Redis is the authority: then the source lacks what has yet to be replayed. An apply does so before it changes
 * Redis, which will no longer be as it was verified: `newerThan` is when its snapshot was opened (ms by the store's
 * clock).
 */
export async function withdrawVerified(
  store: RedisClient,
  prefix: string,
  newerThan = -Infinity,
): Promise<boolean> {
  const [mode = null, verified = null] = await store.hmget(cutoverKey(prefix), 'mode', 'verified');
  if (mode === null || !isMode(mode) || authorityOf(mode) !== 'legacy') return false;
  if (verified === null || Number(verified) <= newerThan) return false;
  return (await store.hdel(cutoverKey(prefix), 'verified', 'verified-on')) > 0;
}
