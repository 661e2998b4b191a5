import { organizationBase } from '../../redis/keys.ts';
import { currentProfile } from './current-state.ts';
import type { DeliveryOptions } from './delivery/delivery.ts';
import type { QueuedChange } from './queue/changes.ts';
import type { KeyRefusal, ReplayQueue } from './queue/queue.ts';
import { orderForm, sendable, type WaitingChange } from './rules.ts';

/** How the legacy service has refused a change: the HTTP status, and the code in its answer, if any. */
export interface Refusal {
  status: number;
  code: string | undefined;
}

/** A waiting change with what has happened to it so far. */
export interface Entry extends WaitingChange {
  queued: QueuedChange;
  /** Who else has begun to send it, as far as is known. */
  otherSender: string | undefined;
  isUnderWay: boolean;
  /** When it may be sent (again), by `now`. */
  notBefore: number;
  sent: number;
  failingSince: number | undefined;
  /** How the legacy service has answered last; '' before. */
  answer: string;
  /** Whether the last check found that other requests succeed, although the change has been failing for long. */
  isSuspect: boolean;
  /** The API keys that the legacy service has refused since it was last postponed, by their public ids, and how. */
  refusals: Map<string, KeyRefusal & Refusal>;
}

export interface WaitingOptions extends Pick<DeliveryOptions, 'store' | 'keyPrefix' | 'legacy'> {
  queue: Pick<ReplayQueue, 'read'>;
  /** How many changes of an organization may be in memory; the others wait in Redis until some have been replayed. */
  maxInMemory: () => number;
  /** A monotonic clock, in ms. */
  now: () => number;
}

const readAtOnce = 500;

/** An organization's waiting changes, as far as they are in memory, in the order of acceptance. */
export type Waiting = ReturnType<typeof createWaiting>;

export function createWaiting(options: WaitingOptions, organizationId: string) {
  const { store, keyPrefix, queue, now } = options;
  const entries = new Map<string, Entry>();
  let lastRead: string | undefined;
  /** By which changes were announced last. */
  let token: string | undefined;
  /** Whether some may wait that are not in memory. */
  let hasMore = true;

  async function toEntry(queued: QueuedChange): Promise<Entry> {
    const { id, caller, change, sender: otherSender } = queued;
    const { userId } = caller;
    const isPut = change.kind === 'put' && userId !== undefined;
    const current =
      isPut && queued.isRetry
        ? await currentProfile(store, organizationBase(keyPrefix, organizationId), userId)
        : undefined;
    const names = isPut ? [change.released, change.username, current?.username] : [];
    return {
      id,
      ...(isPut && { userId }),
      names: names.filter((name) => name !== undefined).map(orderForm),
      queued,
      otherSender,
      isUnderWay: false,
      // A request of another sender may still take effect, since it had the lease until a moment ago.
      notBefore: otherSender === undefined ? 0 : now() + 2 * options.legacy.timeoutMs,
      sent: 0,
      failingSince: undefined,
      answer: '',
      isSuspect: false,
      refusals: new Map(),
    };
  }

  return {
    /** New changes are read only after an announcement with another token. */
    noteToken: (latest: string): void => {
      hasMore ||= latest !== token;
      token = latest;
    },
    /** Reads the changes that have been announced, as far as there is room for them. */
    readNew: async (): Promise<void> => {
      while (hasMore) {
        const count = Math.min(readAtOnce, options.maxInMemory() - entries.size);
        if (count <= 0) return;
        const found = await queue.read(organizationId, count, lastRead);
        for (const queued of found) {
          entries.set(queued.id, await toEntry(queued));
          lastRead = queued.id;
        }
        hasMore = found.length === count;
      }
    },
    isEmpty: (): boolean => entries.size === 0,
    remove: ({ id }: Entry): void => void entries.delete(id),
    /** Those that may be sent now, oldest first, at most `limit` of them. */
    sendable: (limit: number): Entry[] =>
      sendable(entries.values(), ({ isUnderWay, notBefore }) => isUnderWay || notBefore > now(), limit),
    /** All of them. */
    changes: (): QueuedChange[] => [...entries.values()].map(({ queued }) => queued),
    /** The change itself, then the others of its user. */
    ofSameUser: function* ({ queued: own, userId }: Entry): Generator<QueuedChange, void> {
      yield own;
      if (userId === undefined) return;
      for (const { queued } of entries.values()) if (queued.caller.userId === userId) yield queued;
    },
    /** Whether an older change waits. */
    hasOlder: ({ id }: Entry): boolean => entries.keys().next().value !== id,
    /**
     * Whether a later change concerns the same user or name. Not one that is a retry as well, since each would go behind
     * the other for ever.
     */
    isConcernedLater: ({ id, userId, names }: Entry): boolean => {
      const all = [...entries.values()];
      const later = all.slice(all.findIndex((one) => one.id === id) + 1);
      return later.some(
        (one) =>
          !one.queued.isRetry &&
          (one.userId === undefined ||
            one.userId === userId ||
            one.names.some((name) => names.includes(name))),
      );
    },
  };
}
