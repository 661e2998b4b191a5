import { getOrInsert } from '../lib/collections/get-or-insert.ts';
import type { RedisClient } from './connection/client.ts';
import { script } from './connection/script-loader.ts';
import { organizationBase, replayListingKey, replayWaitingKey } from './keys.ts';

const closeListing = script<[], number>('cutover/replay/listing/close');
const unlist = script<[organizationId: string, number: number], number>('cutover/replay/listing/remove');

/** The list of the organizations in which changes wait for their replay (lua/lib/replay.lua). */
export type ReplayListings = ReturnType<typeof createReplayListings>;

export interface Listing {
  /** The number under which it was listed last, as far as this process knows; else ''. */
  number: string;
  renew: (number: string) => Promise<void>;
}

export function createReplayListings(store: RedisClient, prefix: string) {
  const key = replayWaitingKey(prefix);
  const known = new Map<string, Listing>();

  /** Never lowers the number, as a late call might. */
  async function list(organizationId: string, number: string): Promise<void> {
    await store.zadd(key, 'GT', number, organizationId);
  }

  return {
    /** The listing under which something may be queued. */
    of: (organizationId: string): Listing =>
      getOrInsert(known, organizationId, () => {
        const listing: Listing = {
          number: '',
          renew: async (number) => {
            await list(organizationId, number);
            listing.number = number;
          },
        };
        return listing;
      }),
    /** All organizations in which something waits; there may be others among them. */
    all: () => store.zrange(key, '0', '-1'),
    /** Takes an organization off the list, unless something waits; whether it did. */
    close: async (organizationId: string): Promise<boolean> => {
      const ended = await closeListing(store, organizationBase(prefix, organizationId));
      if (ended < 0) return false;
      await unlist(store, key, organizationId, ended);
      return true;
    },
    /** Puts an organization in which something waits on the list again, which a failover may have lost. */
    restore: async (organizationId: string): Promise<void> => {
      const number = await store.get(replayListingKey(organizationBase(prefix, organizationId)));
      await list(organizationId, number ?? '0');
    },
  };
}

/** Runs a script that queues something; where its organization is not on the list any more, puts it there first. */
export async function whileListed<Reply>(
  listing: Listing,
  run: (number: string) => Promise<Reply>,
): Promise<Reply> {
  for (;;) {
    try {
      return await run(listing.number);
    } catch (error) {
      // The script has changed nothing.
      const [, number] = /\bUNLISTED (\d+)/.exec(String(error)) ?? [];
      if (number === undefined) throw error;
      await listing.renew(number);
    }
  }
}
