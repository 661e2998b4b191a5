import { randomUUID } from 'node:crypto';
import type { RedisClient } from '../../../redis/connection/client.ts';
import { gathererOf, script } from '../../../redis/connection/script-loader.ts';
import { organizationBase, replayKey, replayOrganizationsKey } from '../../../redis/keys.ts';
import { organizationsInBatches } from '../../../redis/organizations.ts';

const addToList = script<[organizationId: string, token: string], null>('cutover/replay/announce');

/** The list of the organizations in which changes wait, so that a replay need not ask each of them. */
export function createReplayList(store: RedisClient, prefix: string) {
  const list = replayOrganizationsKey(prefix);
  const gather = gathererOf(store);

  async function hasChanges(organizationId: string): Promise<boolean> {
    return (await store.xlen(replayKey(organizationBase(prefix, organizationId)))) > 0;
  }

  /**
   * Puts an organization on the list with a new token: after every change that was queued. Whoever takes it off looks for
   * changes again afterwards, so one that waits is missing for a moment only; or, if its instance was killed or a
   * failover lost it, until `restoreList`. Never rejects.
   */
  async function announce(organizationId: string): Promise<void> {
    await addToList(store, list, organizationId, randomUUID()).catch(() => {});
  }

  return {
    announce,
    /**
     * All organizations in which something waits, with tokens: nothing was queued since the same one was seen. There may
     * be others among them, until they are taken off.
     */
    listed: async (): Promise<[organizationId: string, token: string][]> =>
      Object.entries(await store.hgetall(list)),
    /** Takes an organization off the list, unless something waits. */
    unlist: async (organizationId: string): Promise<void> => {
      if (await hasChanges(organizationId)) return;
      await store.hdel(list, organizationId);
      if (await hasChanges(organizationId)) await announce(organizationId);
    },
    /** Announces what waits again, which the list may lack. Asks every organization. */
    restoreList: async (): Promise<void> => {
      for await (const ids of organizationsInBatches(store, prefix)) {
        gather();
        const waiting = await Promise.all(ids.map(hasChanges));
        await Promise.all(ids.filter((_, at) => waiting[at]).map(announce));
      }
    },
  };
}
