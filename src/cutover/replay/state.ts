import { replayPauseKey } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import type { OrganizationBacklog, ReplayQueue } from './queue/queue.ts';

/** What waits for its replay in all organizations, and why nothing is sent, where that is so. */
export interface ReplayState {
  entries: number;
  /** When the oldest entry was accepted, ms by the store's clock. */
  oldestAt: number | undefined;
  setAside: number;
  /** Why the replay pauses; undefined where it does not. */
  pausedBecause: string | undefined;
  organizations: OrganizationBacklog[];
}

export async function readReplayState(
  store: RedisClient,
  keyPrefix: string,
  queue: Pick<ReplayQueue, 'backlog'>,
): Promise<ReplayState> {
  const organizations: OrganizationBacklog[] = [];
  for await (const one of queue.backlog()) organizations.push(one);
  const oldest = organizations.map(({ oldestAt }) => oldestAt).filter((at) => at !== undefined);
  return {
    entries: organizations.reduce((sum, { entries }) => sum + entries, 0),
    oldestAt: oldest.length === 0 ? undefined : Math.min(...oldest),
    setAside: organizations.reduce((sum, { setAside }) => sum + setAside, 0),
    pausedBecause: (await store.get(replayPauseKey(keyPrefix))) ?? undefined,
    organizations,
  };
}
