import type { RedisClient } from '../../../redis/connection/client.ts';
import { script } from '../../../redis/connection/script-loader.ts';
import {
  forwardedOrganizationsKey,
  organizationBase,
  replayAsideKey,
  replayKey,
  replayListKey,
  replaySendersKey,
} from '../../../redis/keys.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { scanPairs } from '../../../redis/connection/scan.ts';
import { organizationsInBatches } from '../../../redis/organizations.ts';
import { readBacklog } from './backlog.ts';
import {
  byId,
  callerFields,
  toQueuedChange,
  toSetAsideChange,
  type AcceptedChange,
  type AsideReason,
  type QueuedChange,
  type SetAsideChange,
} from './changes.ts';
import { createReplayList } from './list.ts';

const markEntry = script<[id: string, sender: string, known: string, answer: string], string>(
  'cutover/replay/mark',
);
const completeEntry = script<[id: string, acceptedKey: string, file: string, url: string], null>(
  'cutover/replay/complete',
);
const refuseKey = script<[keyId: string], [forMs: number, isOtherAccepted: number]>('cutover/replay/refuse');
const setEntryAside = script<[id: string, status: number, reason: string], number>(
  'cutover/replay/set_aside',
);
const retryEntry = script<[id: string], number>('cutover/replay/retry');
const sendEntryAgain = script<[fields: string, sender: string], null>('cutover/replay/send_again');
const discardEntries = script<[count: number, epoch: number], AcceptedChange['kind'][]>(
  'cutover/replay/discard',
);

const forgetKeys = script<[epoch: number, ids: string], null>('cutover/replay/forget_keys');

/** A picture file, and the URL at which the legacy service shows it. */
export interface UploadedFile {
  file: string;
  url: string;
}

export interface KeyRefusal {
  /** In ms, by the store's clock: since the first refusal, whichever instance met it. */
  forMs: number;
  /** Whether it has accepted another key of the organization since. */
  isOtherAccepted: boolean;
}

const listPartsAtOnce = 50;
const discardedAtOnce = 100;
const forgottenAtOnce = 200;

/** The changes of all organizations that wait for the legacy service. */
export type ReplayQueue = ReturnType<typeof createReplayQueue>;

export function createReplayQueue(store: RedisClient, prefix: string) {
  const list = createReplayList(store, prefix);
  const baseOf = (organizationId: string): string => organizationBase(prefix, organizationId);

  return {
    ...list,
    /** What waits in all organizations, as of now. Asks each of them. */
    state: () => readBacklog(store, prefix),
    /** The oldest entries of an organization, in order, at most `count`; only those after the id `after`, if given. */
    read: async (organizationId: string, count: number, after?: string): Promise<QueuedChange[]> => {
      const from = after === undefined ? '-' : `(${after}`;
      const base = baseOf(organizationId);
      const rows = await store.xrange(replayKey(base), from, '+', 'COUNT', count);
      if (rows.length === 0) return [];
      const senders = await store.hmget(replaySendersKey(base), ...rows.map(([id]) => id));
      return rows.map(([id, fields], at) => toQueuedChange(organizationId, id, fields, senders[at]));
    },
    /** The names of an overwrite, in parts. */
    readOverwrite: async function* (organizationId: string, token: string): AsyncGenerator<string[]> {
      const key = replayListKey(baseOf(organizationId), token);
      for (let at = 0; ; at += listPartsAtOnce) {
        const parts = await store.lrange(key, at, at + listPartsAtOnce - 1);
        for (const part of parts) yield JSON.parse(part) as string[];
        if (parts.length < listPartsAtOnce) return;
      }
    },
    /**
     * Records who is about to send an entry, unless another sender than the `known` one has begun to; if it is sent
     * again, also the `answer` that is the reason. Returns who is to send it; undefined if it is no longer in the queue.
     */
    mark: async (
      organizationId: string,
      id: string,
      sender: string,
      known = '',
      answer = '',
    ): Promise<string | undefined> =>
      (await markEntry(store, baseOf(organizationId), id, sender, known, answer)) || undefined,
    /**
     * Removes an entry that the legacy service has, and releases what was kept for it. `acceptedKey`: the public id of
     * the API key, if anything had to be sent; `uploaded`: the file that was sent.
     */
    complete: async (
      organizationId: string,
      id: string,
      acceptedKey = '',
      { file, url }: UploadedFile = { file: '', url: '' },
    ): Promise<void> => {
      await completeEntry(store, baseOf(organizationId), id, acceptedKey, file, url);
    },
    /** Records that the legacy service has refused an API key; returns for how long it has. */
    refuse: async (organizationId: string, keyId: string): Promise<KeyRefusal> => {
      const [forMs, isOtherAccepted] = await refuseKey(store, baseOf(organizationId), keyId);
      return { forMs, isOtherAccepted: isOtherAccepted === 1 };
    },
    /** Takes an entry out of the queue for the operator to decide about; false if it is not in the queue. */
    setAside: async (
      organizationId: string,
      id: string,
      { status, reason }: AsideReason,
    ): Promise<boolean> => {
      // Once nothing waits there, only this list tells of it if the registry loses the organization.
      await store.sadd(forwardedOrganizationsKey(prefix), organizationId);
      return (await setEntryAside(store, baseOf(organizationId), id, status, reason)) === 1;
    },
    /** The changes set aside in an organization, in the order in which they were accepted. */
    listSetAside: async (organizationId: string): Promise<SetAsideChange[]> => {
      const rows = new Map<string, string>();
      for await (const some of scanPairs(store, replayAsideKey(baseOf(organizationId))))
        for (const [id, row] of some) rows.set(id, row);
      return [...rows].map((row) => toSetAsideChange(organizationId, row)).sort(byId);
    },
    /** Puts a change that waits, or was set aside, at the end of the queue as a retry; false if there is none. */
    retry: async (organizationId: string, id: string): Promise<boolean> => {
      const isQueued = (await retryEntry(store, baseOf(organizationId), id)) === 1;
      await list.announce(organizationId);
      return isQueued;
    },
    /**
     * Queues sending the current state (the whole denylist for a change of it), for a request that may have taken
     * effect after what another sender sent.
     */
    sendAgain: async ({ caller, sealedKey, change, at }: QueuedChange, sender: string): Promise<void> => {
      const what =
        change.kind === 'put'
          ? { kind: change.kind, change: '{}' }
          : { kind: 'overwrite', change: JSON.stringify({ list: '' }) };
      const fields = JSON.stringify({ ...callerFields(caller, sealedKey), ...what, accepted: String(at) });
      await sendEntryAgain(store, baseOf(caller.organizationId), fields, sender);
      await list.announce(caller.organizationId);
    },
    /** Discards a change that was set aside; false if there is none. */
    drop: async (organizationId: string, id: string): Promise<boolean> =>
      (await store.hdel(replayAsideKey(baseOf(organizationId)), id)) === 1,
    /**
     * Removes everything that waits, and the API keys of what is set aside; how much was discarded, by kind of change.
     * Nothing if a later switch has raised the epoch, since this process was held up.
     */
    discard: async (epoch: number): Promise<Record<AcceptedChange['kind'], number>> => {
      const counts = { put: 0, ban: 0, remove: 0, overwrite: 0 };
      for await (const ids of organizationsInBatches(store, prefix)) {
        const discardIn = async (organizationId: string): Promise<void> => {
          const base = baseOf(organizationId);
          for (let isDone = false; !isDone;) {
            const kinds = await discardEntries(store, base, discardedAtOnce, epoch);
            for (const kind of kinds) counts[kind] += 1;
            isDone = kinds.length < discardedAtOnce;
          }
          for await (const rows of scanPairs(store, replayAsideKey(base))) {
            const sealed = rows.filter(([, row]) => (JSON.parse(row) as { sealed?: string }).sealed !== '');
            for (const some of inBatches(sealed, { size: forgottenAtOnce }))
              await forgetKeys(store, base, epoch, JSON.stringify(some.map(([id]) => id)));
          }
        };
        await Promise.all(ids.map(discardIn));
      }
      return counts;
    },
  };
}
