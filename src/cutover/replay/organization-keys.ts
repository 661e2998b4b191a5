import type { ReplayCredentials } from './credentials.ts';
import type { Delivery } from './delivery.ts';
import type { QueuedChange } from './queue/changes.ts';
import type { KeyRefusal } from './queue/queue.ts';
import { probeSucceeded, setAsideAfterMs } from './rules.ts';

/** An API key that the legacy service has refused, with its response. */
export interface RefusedKey extends KeyRefusal {
  status: number;
  code: string | undefined;
}

interface KeyHolder {
  queued: QueuedChange;
  /** Of a change of a profile. */
  userId?: string | undefined;
  /** By the keys' public ids. */
  refusals: ReadonlyMap<string, RefusedKey>;
}

/** How many keys are tried at most to see whether the legacy service accepts any. */
const maxProbes = 10;

/** The API keys stored with the waiting `changes` of an organization. */
export function organizationKeys(
  changes: () => Iterable<KeyHolder>,
  credentials: Pick<ReplayCredentials, 'open'>,
  delivery: Pick<Delivery, 'probe'>,
  onAccepted: () => void,
) {
  function openKey(queued: QueuedChange) {
    const apiKey = credentials.open(queued);
    return apiKey === undefined ? undefined : { apiKey, keyId: queued.caller.keyId };
  }

  function* sameUser({ queued: own, userId }: KeyHolder): Generator<QueuedChange, void> {
    yield own;
    if (userId === undefined) return;
    for (const { queued } of changes()) if (queued.caller.userId === userId) yield queued;
  }

  /** Nothing else may have been sent meanwhile, since everything may be waiting for the change whose key is refused. */
  async function isAnyKeyAccepted(): Promise<boolean> {
    const probed = new Set<string>();
    for (const { queued } of changes()) {
      if (probed.size === maxProbes) return false;
      const key = probed.has(queued.caller.keyId) ? undefined : openKey(queued);
      if (key === undefined) continue;
      probed.add(key.keyId);
      if (!probeSucceeded(await delivery.probe(queued, key.apiKey))) continue;
      onAccepted();
      return true;
    }
    return false;
  }

  return {
    /** A key for a change: its own, or another one of the same user; undefined where none is left, or can be opened. */
    keyFor: (change: KeyHolder) => {
      for (const queued of sameUser(change)) {
        const key = change.refusals.has(queued.caller.keyId) ? undefined : openKey(queued);
        if (key !== undefined) return key;
      }
      return undefined;
    },
    /** Whether keys have been refused for long, while the legacy service accepted others of the organization. */
    areRefusedForGood: async (refusals: readonly KeyRefusal[]): Promise<boolean> => {
      if (refusals.some(({ forMs }) => forMs < setAsideAfterMs)) return false;
      return refusals.every(({ isOtherAccepted }) => isOtherAccepted) || (await isAnyKeyAccepted());
    },
  };
}
