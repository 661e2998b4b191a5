import type { ApiKeyCipher } from './api-key-cipher.ts';
import type { Delivery } from './delivery/delivery.ts';
import type { QueuedChange } from './queue/changes.ts';

/** An API key, with its public id. */
export interface OpenKey {
  apiKey: string;
  keyId: string;
}

/** How many keys are tried at most to see whether the legacy service accepts any. */
const maxProbes = 10;

/** The first API key stored with these changes that can be opened, except those of these public ids. */
export function firstKey(
  cipher: Pick<ApiKeyCipher, 'open'>,
  changes: Iterable<QueuedChange>,
  except: Pick<ReadonlySet<string>, 'has'>,
): OpenKey | undefined {
  for (const queued of changes) {
    const { keyId } = queued.caller;
    const apiKey = except.has(keyId) ? undefined : cipher.open(queued);
    if (apiKey !== undefined) return { apiKey, keyId };
  }
  return undefined;
}

/** Whether the legacy service accepts any of the API keys stored with these changes. */
export async function isAnyKeyAccepted(
  cipher: Pick<ApiKeyCipher, 'open'>,
  changes: Iterable<QueuedChange>,
  delivery: Pick<Delivery, 'probe'>,
): Promise<boolean> {
  const probed = new Set<string>();
  for (const queued of changes) {
    if (probed.size === maxProbes) return false;
    const key = firstKey(cipher, [queued], probed);
    if (key === undefined) continue;
    probed.add(key.keyId);
    if (await delivery.probe(queued, key.apiKey)) return true;
  }
  return false;
}
