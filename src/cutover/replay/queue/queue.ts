import { decodeReference, type ProfileChange } from '../../../domain/profile.ts';
import { yieldingChunks } from '../../../lib/time-slices.ts';
import type { RedisClient } from '../../../redis/connection/client.ts';
import {
  organizationBase,
  organizationsKey,
  profileKey,
  replayAsideKey,
  replayListKey,
} from '../../../redis/keys.ts';
import { createReplayListings, whileListed } from '../../../redis/replay-listings.ts';
import {
  replayBacklog,
  replayComplete,
  replayDiscard,
  replayForgetKeys,
  replayMark,
  replayRead,
  replayRefuse,
  replayRetry,
  replaySendAgain,
  replaySetAside,
} from './scripts.ts';
import {
  byId,
  timeOf,
  toQueuedChange,
  toSetAsideChange,
  type AcceptedChange,
  type QueuedChange,
  type Refusal,
  type SetAsideChange,
} from './changes.ts';

/** What the legacy service has accepted with a change. */
interface Acceptance {
  /** The public id of the API key. */
  keyId: string;
  /** Where it shows the file that was uploaded; noted in the profile if it still has this file. */
  pictureUrl?: string | undefined;
}

/** For how long the legacy service has refused an API key. */
export interface KeyRefusal {
  /** In ms, by the store's clock: since the first refusal, whichever instance met it. */
  forMs: number;
  /** Whether it has accepted another key of the organization since. */
  isOtherAccepted: boolean;
}

/** What waits in one organization. */
export interface OrganizationBacklog {
  organizationId: string;
  entries: number;
  /** When the oldest entry was accepted, ms by the store's clock; undefined where none waits. */
  oldestAt: number | undefined;
  setAside: number;
}

/** What a queue holds, by kind of change. */
type QueueCounts = Record<AcceptedChange['kind'], number>;

/** The changes of all organizations that wait for the legacy service. */
export interface ReplayQueue {
  /** The organizations in which something waits or is set aside. Asks every organization. */
  backlog: () => AsyncGenerator<OrganizationBacklog>;
  /** All organizations in which something waits; there may be others among them, until they are closed. */
  listed: () => Promise<string[]>;
  /** Takes an organization off that list, unless something waits; whether it did. */
  close: (organizationId: string) => Promise<boolean>;
  /** Puts on the list what it lacks by a failover, or by an instance of an older version. Asks every organization. */
  restoreList: () => Promise<void>;
  /** The oldest entries of an organization, in order, at most `count`; only those after the id `after`, if given. */
  read: (organizationId: string, count: number, after?: string) => Promise<QueuedChange[]>;
  /** The names of an overwrite, in parts. */
  readList: (organizationId: string, list: string) => AsyncGenerator<string[]>;
  /**
   * Records who is about to send an entry, unless somebody else has begun to since it was `known` who had. Whoever is to
   * send it now; undefined where the entry is not in the queue any more.
   */
  mark: (organizationId: string, id: string, sender: string, known?: string) => Promise<string | undefined>;
  /** Removes an entry that the legacy service has, and lets go of what was kept for it. */
  complete: (organizationId: string, id: string, accepted?: Acceptance) => Promise<void>;
  /** Records that the legacy service has refused an API key; for how long it has, until it accepts the key. */
  refuse: (organizationId: string, keyId: string) => Promise<KeyRefusal>;
  /** Takes an entry out of the queue, for the operator to decide about; false where it is not in the queue. */
  setAside: (organizationId: string, id: string, refusal: Refusal) => Promise<boolean>;
  /** The changes set aside in an organization, in the order in which they were accepted. */
  listSetAside: (organizationId: string) => Promise<SetAsideChange[]>;
  /** Puts a change that waits, or was set aside, at the end of the queue as a retry; false where there is none. */
  retry: (organizationId: string, id: string) => Promise<boolean>;
  /**
   * For a change that another sender may have completed while a request of this sender was under way, which may have
   * taken effect after it: queues that the state of now is sent, of a denylist change the whole denylist.
   */
  sendAgain: (change: QueuedChange, sender: string) => Promise<void>;
  /** Forgets a change that was set aside; false where there is none. */
  drop: (organizationId: string, id: string) => Promise<boolean>;
  /**
   * What a PUT has to say so that the user's profile in the legacy service becomes as it is here. A picture of which
   * only the legacy service's own URL is known is left as it is. Undefined where the user has no profile.
   */
  currentProfile: (organizationId: string, userId: string) => Promise<ProfileChange | undefined>;
  /** Removes everything that waits, but not what is set aside; returns what was discarded. */
  discard: () => Promise<QueueCounts>;
  /**
   * Removes the API keys from the changes that are set aside, and what is left of empty queues. For when the mode has
   * left reverse.
   */
  forgetKeys: () => Promise<void>;
}

const organizationsAtOnce = 100;
const listPartsAtOnce = 50;
const discardedAtOnce = 100;

/** The queue that the scripts of changes write to (lua/lib/change.lua). */
export function createReplayQueue(store: RedisClient, prefix: string): ReplayQueue {
  const listings = createReplayListings(store, prefix);
  const baseOf = (organizationId: string): string => organizationBase(prefix, organizationId);

  async function* organizations(): AsyncGenerator<string[]> {
    yield* yieldingChunks(await store.smembers(organizationsKey(prefix)), organizationsAtOnce);
  }

  async function* backlog(): AsyncGenerator<OrganizationBacklog> {
    for await (const ids of organizations()) {
      const replies = await Promise.all(ids.map((id) => replayBacklog(store, baseOf(id))));
      for (const [at, organizationId] of ids.entries()) {
        const [entries = 0, setAside = 0, oldest = ''] = replies[at] ?? [];
        if (entries === 0 && setAside === 0) continue;
        yield { organizationId, entries, setAside, oldestAt: oldest === '' ? undefined : timeOf(oldest) };
      }
    }
  }

  return {
    backlog,
    listed: listings.all,
    close: listings.close,
    restoreList: async () => {
      for await (const { organizationId, entries } of backlog()) {
        if (entries > 0) await listings.restore(organizationId);
      }
    },
    read: async (organizationId, count, after) => {
      const rows = await replayRead(
        store,
        baseOf(organizationId),
        after === undefined ? '-' : `(${after}`,
        count,
      );
      return rows.map((row) => toQueuedChange(organizationId, row));
    },
    readList: async function* (organizationId, list) {
      const key = replayListKey(baseOf(organizationId), list);
      for (let at = 0; ; at += listPartsAtOnce) {
        const parts = await store.lrange(key, at, at + listPartsAtOnce - 1);
        for (const part of parts) yield JSON.parse(part) as string[];
        if (parts.length < listPartsAtOnce) return;
      }
    },
    mark: async (organizationId, id, sender, known = '') =>
      (await replayMark(store, baseOf(organizationId), id, sender, known)) || undefined,
    complete: async (organizationId, id, { keyId, pictureUrl = '' } = { keyId: '' }) => {
      await replayComplete(store, baseOf(organizationId), id, keyId, pictureUrl);
    },
    refuse: async (organizationId, keyId) => {
      const [forMs, isOtherAccepted] = await replayRefuse(store, baseOf(organizationId), keyId);
      return { forMs, isOtherAccepted: isOtherAccepted === 1 };
    },
    setAside: async (organizationId, id, { status, reason }) =>
      (await replaySetAside(store, baseOf(organizationId), id, status, reason)) === 1,
    listSetAside: async (organizationId) => {
      const rows = Object.entries(await store.hgetall(replayAsideKey(baseOf(organizationId))));
      return rows.map((row) => toSetAsideChange(organizationId, row)).sort(byId);
    },
    retry: async (organizationId, id) =>
      (await whileListed(listings.of(organizationId), (listing) =>
        replayRetry(store, baseOf(organizationId), listing, id),
      )) === 1,
    sendAgain: async ({ caller, sealedKey, change }, sender) => {
      const { organizationId, keyId, role, userId = '' } = caller;
      const what =
        change.kind === 'put'
          ? { kind: change.kind, change: '{}' }
          : { kind: 'overwrite', change: JSON.stringify({ list: '' }) };
      const fields = JSON.stringify({ key: keyId, role, user: userId, sealed: sealedKey, ...what });
      await whileListed(listings.of(organizationId), (listing) =>
        replaySendAgain(store, baseOf(organizationId), listing, fields, sender),
      );
    },
    drop: async (organizationId, id) => (await store.hdel(replayAsideKey(baseOf(organizationId)), id)) === 1,
    currentProfile: async (organizationId, userId) => {
      const [changed, username, file, reference, url, avatar] = await store.hmget(
        profileKey(baseOf(organizationId), userId),
        't',
        'u',
        'pf',
        'pr',
        'pu',
        'ar',
      );
      if (typeof changed !== 'string') return undefined;
      const state: ProfileChange = { avatar: avatar ? decodeReference(avatar) : null };
      if (username) state.username = username;
      if (file) state.picture = { file };
      else if (reference) state.picture = { reference: decodeReference(reference) };
      else if (!url) state.picture = null;
      return state;
    },
    discard: async () => {
      const counts: QueueCounts = { put: 0, ban: 0, remove: 0, overwrite: 0 };
      for await (const ids of organizations()) {
        for (const id of ids) {
          for (;;) {
            const kinds = await replayDiscard(store, baseOf(id), discardedAtOnce);
            for (const kind of kinds) counts[kind] += 1;
            if (kinds.length < discardedAtOnce) break;
          }
        }
      }
      return counts;
    },
    forgetKeys: async () => {
      for await (const ids of organizations()) {
        await Promise.all(ids.map((id) => replayForgetKeys(store, baseOf(id))));
      }
    },
  };
}
