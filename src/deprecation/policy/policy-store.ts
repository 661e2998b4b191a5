import type { Log } from '../../log.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { deprecationHeaders } from './headers.ts';
import { policyKey } from '../ledger/keys.ts';
import { clearLayer, type Edit } from './policy-edits.ts';
import { checkPolicy, layerPolicy, type DeprecationPolicy, type PolicyLayer } from './policy.ts';
import { repeat } from '../../lib/repeat.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { emptyPolicy, readStored, toStored, type OperatorPolicy } from './stored-layer.ts';

const storePolicy = script<[expected: string, wanted: string], string | null>('deprecation/store_policy');

/** The policy in force, and what every request needs of it, computed once per policy. */
export type PolicyInForce = ReturnType<typeof inForce>;

function inForce(policy: DeprecationPolicy, baseUrl: string | undefined) {
  return {
    policy,
    /** The headers of every response for it: a name, its value, the next name … */
    headers: deprecationHeaders(policy, baseUrl),
  };
}

interface WatchOptions {
  /** openapi.yaml's layer, then the environment's. */
  defaults: readonly PolicyLayer[];
  /** What links to a path of this service begin with in headers; by default they stay paths. */
  baseUrl?: string | undefined;
  log: Log;
}

/** The message, with the remedy, if what is stored is not a policy. */
export const invalidPolicy =
  'the stored deprecation policy is invalid (profile-bridge admin deprecation clear removes it)';

/** How often the policy is read, in ms: a change is to take effect within five seconds. */
const pollMs = 2000;

/**
 * Follows the operator's policy: reads it once before it resolves, and then every two seconds. Without Redis, the last
 * known policy (at first: the defaults) stays in force.
 */
export async function watchPolicy(
  store: RedisClient,
  prefix: string,
  { defaults, baseUrl, log }: WatchOptions,
) {
  let known: string | null = null;
  let hasTrouble = false;
  const warnOnce = (what: string, detail: string) => {
    if (!hasTrouble) log.warn(`${what}; the last known deprecation policy stays in force`, { detail });
    hasTrouble = true;
  };
  const refresh = async () => {
    try {
      const text = await store.get(policyKey(prefix));
      if (text !== known) {
        const stored = readStored(text);
        if (stored === undefined) {
          warnOnce(invalidPolicy, policyKey(prefix));
          return;
        }
        known = text;
        watch.current = inForce(layerPolicy(...defaults, stored.layer), baseUrl);
        // Each layer was checked when it was set, but one below may have changed since.
        for (const reason of checkPolicy(watch.current.policy, Date.now())) {
          log.warn('the deprecation policy contradicts itself: see profile-bridge admin deprecation show', {
            reason,
          });
        }
      }
      hasTrouble = false;
    } catch (error) {
      warnOnce('the deprecation policy cannot be read', String(error));
    }
  };
  const watch = {
    /** The last known policy; replaced whenever another comes into force. */
    current: inForce(layerPolicy(...defaults), baseUrl),
    /** Reads it now. Keeps the last known policy while Redis is unavailable; never throws. */
    refresh,
  };
  await refresh();
  return Object.assign(watch, { close: repeat(refresh, pollMs) });
}

/** The operator's own layer, as stored; undefined if it is invalid. */
export async function readOperatorLayer(
  store: RedisClient,
  prefix: string,
): Promise<OperatorPolicy | undefined> {
  return readStored(await store.get(policyKey(prefix)));
}

export type Changed =
  | { kind: 'changed'; before: PolicyLayer; policy: DeprecationPolicy; version: number }
  | { kind: 'refused'; reasons: string[] };

/**
 * Edits the operator's layer and stores it, or refuses with the reasons and stores nothing. `defaults` are those of
 * `watchPolicy`, `now` is in ms. Compare and swap: of two concurrent changes, the later one edits the result of the
 * earlier.
 */
export async function changePolicy(
  store: RedisClient,
  prefix: string,
  edit: Edit,
  { defaults, now }: { defaults: readonly PolicyLayer[]; now: number },
): Promise<Changed> {
  const key = policyKey(prefix);
  let text = await store.get(key);
  for (;;) {
    const readable = readStored(text);
    if (readable === undefined && edit !== clearLayer) return { kind: 'refused', reasons: [invalidPolicy] };
    const { version, layer: before } = readable ?? emptyPolicy;
    const edited = edit(before, defaults, now);
    if (edited.kind === 'refused') return edited;
    const { layer } = edited;
    const wanted = toStored({ version: version + 1, changedAt: now, layer });
    const held = await storePolicy(store, key, text ?? '', wanted);
    // It is the wanted text if the reply to this very change was lost, and the client has sent it again.
    if (held === text || held === wanted) {
      return { kind: 'changed', before, policy: layerPolicy(...defaults, layer), version: version + 1 };
    }
    text = held;
  }
}
