import type { Log } from '../../log.ts';
import type { RedisClient } from '../../redis/connection/connect.ts';
import { deprecationHeaders } from './headers.ts';
import { policyKey } from '../ledger/keys.ts';
import { clearInLayer, setInLayer, type ClearFlags, type Edited, type SetFlags } from './policy-edits.ts';
import { layerPolicy, type DeprecationPolicy, type PolicyLayer } from './policy.ts';
import { repeat } from '../../lib/repeat.ts';
import { defineDeprecationScripts } from '../ledger/scripts.ts';
import { readStored, writeStored, type StoredPolicy } from './stored-layer.ts';

/** The policy in force, and its headers (a name, its value, the next name …), computed once per policy. */
export interface PolicyInForce {
  policy: DeprecationPolicy;
  headers: readonly string[];
  /** How often the operator has changed it; 0 where only the defaults hold. */
  version: number;
}

export interface PolicyWatch {
  /** The last known policy. */
  current: () => PolicyInForce;
  /** Reads it now. Keeps the last known policy while Redis is unavailable; never throws. */
  refresh: () => Promise<void>;
  close: () => Promise<void>;
}

export interface WatchOptions {
  /** openapi.yaml's layer, then the environment's. */
  defaults: readonly PolicyLayer[];
  /** What links to a path of this service begin with in headers; by default they stay paths. */
  baseUrl?: string | undefined;
  log: Log;
  pollMs?: number;
  /** Called with each policy that comes into force after the first. */
  onChange?: (inForce: PolicyInForce) => void;
}

/**
 * Follows the operator's policy: reads it once before it resolves and then every two seconds, so that a change takes
 * effect on this instance within five. Without Redis, the last known policy (at first: the defaults) stays in force.
 */
export async function watchPolicy(
  client: RedisClient,
  prefix: string,
  { defaults, baseUrl, log, pollMs = 2000, onChange }: WatchOptions,
): Promise<PolicyWatch> {
  const inForce = (layer: PolicyLayer, version: number): PolicyInForce => {
    const policy = layerPolicy(...defaults, layer);
    return { policy, headers: deprecationHeaders(policy, baseUrl).flat(), version };
  };
  let current = inForce({}, 0);
  let known: string | null = null;
  let troubled = false;
  const trouble = (what: string, detail: string) => {
    if (!troubled) log.warn(`${what}; the last known deprecation policy stays in force`, { detail });
    troubled = true;
  };
  const refresh = async () => {
    let text: string | null;
    try {
      text = await client.get(policyKey(prefix));
    } catch (error) {
      trouble('the deprecation policy cannot be read', String(error));
      return;
    }
    if (text === known) {
      troubled = false;
      return;
    }
    const stored = readStored(text);
    if (stored === undefined) {
      trouble('the stored deprecation policy is invalid (deprecation clear removes it)', policyKey(prefix));
      return;
    }
    troubled = false;
    known = text;
    current = inForce(stored.layer, stored.version);
    onChange?.(current);
  };
  await refresh();
  const polling = repeat(refresh, pollMs);
  return { current: () => current, refresh, close: polling.stop };
}

/** The operator's own layer, as stored. An invalid one counts as empty. */
export async function readOperatorLayer(client: RedisClient, prefix: string): Promise<StoredPolicy> {
  return readStored(await client.get(policyKey(prefix))) ?? { version: 0, changedAt: 0, layer: {} };
}

export type Changed =
  { kind: 'changed'; policy: DeprecationPolicy; version: number } | { kind: 'refused'; reasons: string[] };

interface ChangeOptions {
  /** As for `watchPolicy`. */
  defaults: readonly PolicyLayer[];
  /** ms */
  now: number;
}

/** `admin deprecation set`: stores the flags, or refuses with the reasons and stores nothing. */
export function setPolicy(
  client: RedisClient,
  prefix: string,
  flags: SetFlags,
  options: ChangeOptions,
): Promise<Changed> {
  return change(client, prefix, options, (layer) => setInLayer(layer, options.defaults, flags, options.now));
}

/** `admin deprecation clear`: removes what the flags name, or everything the operator has set. */
export function clearPolicy(
  client: RedisClient,
  prefix: string,
  flags: ClearFlags,
  options: ChangeOptions,
): Promise<Changed> {
  return change(client, prefix, options, (layer) =>
    clearInLayer(layer, options.defaults, flags, options.now),
  );
}

/** Compare and swap: of two concurrent changes, the later one edits the result of the earlier. */
async function change(
  client: RedisClient,
  prefix: string,
  { defaults, now }: ChangeOptions,
  edit: (layer: PolicyLayer) => Edited,
): Promise<Changed> {
  const store = defineDeprecationScripts(client);
  const key = policyKey(prefix);
  let attempt: { text: string; changed: Changed } | undefined;
  for (;;) {
    const text = await store.get(key);
    // If the reply to an attempt is lost, the client sends it again.
    if (attempt !== undefined && text === attempt.text) return attempt.changed;
    const stored = readStored(text) ?? { version: 0, changedAt: 0, layer: {} };
    const edited = edit(stored.layer);
    if (edited.kind === 'refused') return edited;
    const version = stored.version + 1;
    attempt = {
      text: writeStored({ version, changedAt: now, layer: edited.layer }),
      changed: { kind: 'changed', policy: layerPolicy(...defaults, edited.layer), version },
    };
    if ((await store.replacePolicy(key, text ?? '', attempt.text)) === 'replaced') return attempt.changed;
  }
}
