import type { RedisClient } from '../../../redis/connection/client.ts';
import { organizationBase, replayKey, replayOrganizationsKey } from '../../../redis/keys.ts';

/**
 * The list of the organizations in which changes wait for their replay: each is put on it after every change that was
 * queued, and whoever takes it off looks for changes again afterwards. So one that waits is missing for a moment only, or
 * if its instance was killed, Redis was full or a failover lost it, until all organizations are asked (`restoreList`).
 */
export type ReplayList = ReturnType<typeof createReplayList>;

export function createReplayList(store: RedisClient, prefix: string) {
  const key = replayOrganizationsKey(prefix);
  const isWaiting = async (organizationId: string): Promise<boolean> =>
    (await store.xlen(replayKey(organizationBase(prefix, organizationId)))) > 0;
  const add = async (organizationId: string): Promise<void> => {
    await store.sadd(key, organizationId).catch(() => {});
  };
  return {
    /** Never rejects: what is missing is added later. */
    add,
    /** All organizations in which something waits; there may be others among them. */
    all: () => store.smembers(key),
    /** Takes an organization off the list, unless something waits. */
    close: async (organizationId: string): Promise<void> => {
      if (await isWaiting(organizationId)) return;
      await store.srem(key, organizationId);
      if (await isWaiting(organizationId)) await add(organizationId);
    },
  };
}
