import type { RedisClient } from '../../../redis/connection/client.ts';
import { gathererOf } from '../../../redis/connection/script-loader.ts';
import {
  organizationBase,
  replayAsideKey,
  replayKey,
  replayPauseKey,
  replaySendersKey,
} from '../../../redis/keys.ts';
import { organizationsInBatches } from '../../../redis/organizations.ts';
import { timeOf } from './changes.ts';

/** What waits in all organizations, as of now. Asks each of them. */
export async function readBacklog(store: RedisClient, prefix: string) {
  const organizations: Awaited<ReturnType<typeof backlogOf>>[] = [];
  for await (const ids of organizationsInBatches(store, prefix)) {
    const some = await Promise.all(ids.map((id) => backlogOf(store, prefix, id)));
    organizations.push(...some.filter(({ entries, setAside }) => entries + setAside > 0));
  }
  const oldest = organizations.map(({ oldestAt }) => oldestAt).filter((at) => at !== undefined);
  return {
    entries: organizations.reduce((sum, { entries }) => sum + entries, 0),
    /** When the oldest entry was accepted, ms by the store's clock. */
    oldestAt: oldest.length === 0 ? undefined : Math.min(...oldest),
    setAside: organizations.reduce((sum, { setAside }) => sum + setAside, 0),
    /** Why the replay is paused; undefined if it is not. */
    pausedBecause: (await store.get(replayPauseKey(prefix))) ?? undefined,
    /** Those in which something waits or is set aside. */
    organizations,
  };
}

async function backlogOf(store: RedisClient, prefix: string, organizationId: string) {
  const base = organizationBase(prefix, organizationId);
  gathererOf(store)();
  const [entries, setAside] = await Promise.all([
    store.xlen(replayKey(base)),
    store.hlen(replayAsideKey(base)),
  ]);
  const [oldest] = entries === 0 ? [] : await store.xrange(replayKey(base), '-', '+', 'COUNT', 1);
  const retried = oldest && (await store.hget(replaySendersKey(base), `${oldest[0]} retried`));
  const [, since, answer = ''] = /^(\d+) (.*)/.exec(retried ?? '') ?? [];
  return {
    organizationId,
    entries,
    setAside,
    oldestAt: oldest && timeOf(oldest[0]),
    /** Since when (ms) the oldest entry is sent again, and the last answer to it. */
    ...(since !== undefined && { retried: { since: Number(since), answer } }),
  };
}
