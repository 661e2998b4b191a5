import type { ReplayCredentials } from './credentials.ts';
import type { Delivery } from './delivery.ts';
import type { QueuedChange } from './queue/changes.ts';
import type { KeyRefusal } from './queue/queue.ts';
import { isWell, setAsideAfterMs } from './rules.ts';

/** An API key that a change can be sent with. */
export interface UsableKey {
  apiKey: string;
  /** Its public id. */
  keyId: string;
}

/** An API key that the legacy service has refused, with its response. */
export interface RefusedKey extends KeyRefusal {
  status: number;
  code: string | undefined;
}

/** A waiting change, as far as its keys are concerned. */
export interface KeyHolder {
  queued: QueuedChange;
  /** Of a change of a profile. */
  userId?: string | undefined;
  /** By the keys' public ids. */
  refusals: ReadonlyMap<string, RefusedKey>;
}

/** The API keys that are stored with the waiting changes of an organization. */
export interface OrganizationKeys {
  /** A key for a change: its own, or another one of the same user; undefined if none is left, or can be opened. */
  keyFor: (change: KeyHolder) => UsableKey | undefined;
  /** Whether keys have been refused for long, while the legacy service accepted others of the organization. */
  areForGood: (refusals: readonly KeyRefusal[]) => Promise<boolean>;
}

/** How many keys are tried at most to see whether the legacy service accepts any. */
const mostProbes = 10;

/** `changes`: all that wait. `onAccepted` is called when the legacy service has accepted a key. */
export function organizationKeys(
  changes: () => Iterable<KeyHolder>,
  credentials: Pick<ReplayCredentials, 'open'>,
  delivery: Pick<Delivery, 'probe'>,
  onAccepted: () => void,
): OrganizationKeys {
  function openKey(queued: QueuedChange): UsableKey | undefined {
    const apiKey = credentials.open(queued);
    return apiKey === undefined ? undefined : { apiKey, keyId: queued.caller.keyId };
  }

  /** Nothing else may have been sent meanwhile: everything may wait for the change whose key is refused. */
  async function isAnyKeyAccepted(): Promise<boolean> {
    const probed = new Set<string>();
    for (const { queued } of changes()) {
      if (probed.size === mostProbes) return false;
      const key = probed.has(queued.caller.keyId) ? undefined : openKey(queued);
      if (key === undefined) continue;
      probed.add(key.keyId);
      if (!isWell(await delivery.probe(queued, key.apiKey))) continue;
      onAccepted();
      return true;
    }
    return false;
  }

  return {
    keyFor: ({ queued, userId, refusals }) => {
      const own = refusals.has(queued.caller.keyId) ? undefined : openKey(queued);
      if (own !== undefined || userId === undefined) return own;
      for (const { queued: other } of changes()) {
        if (other.caller.userId !== userId || refusals.has(other.caller.keyId)) continue;
        const key = openKey(other);
        if (key !== undefined) return key;
      }
      return undefined;
    },
    areForGood: async (refusals) => {
      if (refusals.some(({ forMs }) => forMs < setAsideAfterMs)) return false;
      return refusals.every(({ isOtherAccepted }) => isOtherAccepted) || (await isAnyKeyAccepted());
    },
  };
}
