import { formatInstant, formatInterval } from '../../lib/iso8601.ts';
import { checkPolicy, layerPolicy, type Exemption, type PolicyLayer } from './policy.ts';

/** An edit of the operator's layer, judged with the layers below it and as of `now` (ms). */
export type Edit = (layer: PolicyLayer, defaults: readonly PolicyLayer[], now: number) => Edited;

type Edited = { kind: 'edited'; layer: PolicyLayer } | { kind: 'refused'; reasons: string[] };

/**
 * Adds windows and exemptions; any other setting replaces the one before. Refused, with every reason, if an exemption
 * has ended or the resulting policy is invalid. Windows set before that have passed are kept, and not checked again.
 */
export function setInLayer({ brownouts, exemptOrganizations, exemptKeys, ...settings }: PolicyLayer): Edit {
  return (layer, defaults, now) => {
    const next: PolicyLayer = { ...layer, ...settings };
    if (brownouts) next.brownouts = merge(layer.brownouts, brownouts, formatInterval);
    if (exemptOrganizations) {
      next.exemptOrganizations = merge(layer.exemptOrganizations, exemptOrganizations, idOf);
    }
    if (exemptKeys) next.exemptKeys = merge(layer.exemptKeys, exemptKeys, idOf);
    const known = new Set(layer.brownouts?.map(formatInterval));
    const checked = next.brownouts?.filter(
      (window) => window.end > now || !known.has(formatInterval(window)),
    );
    const ended = [...(exemptOrganizations ?? []), ...(exemptKeys ?? [])].filter(({ until }) => until <= now);
    return refuseOrAccept(next, [
      ...ended.map((e) => `the exemption of "${idOf(e)}" ends in the past (${formatInstant(e.until)})`),
      ...checkPolicy(layerPolicy(...defaults, { ...next, brownouts: checked ?? [] }), now),
    ]);
  };
}

/** What to remove from the operator's layer. */
export interface Removals {
  settings?: readonly (keyof PolicyLayer)[];
  /** As `formatInterval` writes them, or only their starts as `formatInstant` does. */
  brownouts?: readonly string[];
  exemptOrganizations?: readonly string[];
  exemptKeys?: readonly string[];
}

/**
 * Removes settings, windows and exemptions, so that the layers below apply again. Refused if a window or an exemption
 * is not set, or if the resulting policy is invalid.
 */
export function clearInLayer({ settings, brownouts, exemptOrganizations, exemptKeys }: Removals): Edit {
  return (layer, defaults, now) => {
    const missing: string[] = [];
    const without = <T>(list: T[] = [], names: readonly string[] = [], namesOf: (item: T) => string[]) => {
      missing.push(...names.filter((name) => !list.some((item) => namesOf(item).includes(name))));
      return list.filter((item) => !namesOf(item).some((name) => names.includes(name)));
    };
    const cleared: PolicyLayer = {
      ...layer,
      brownouts: without(layer.brownouts, brownouts, (w) => [formatInterval(w), formatInstant(w.start)]),
      exemptOrganizations: without(layer.exemptOrganizations, exemptOrganizations, (e) => [idOf(e)]),
      exemptKeys: without(layer.exemptKeys, exemptKeys, (e) => [idOf(e)]),
    };
    const left = Object.entries(cleared).filter(
      ([name, value]) =>
        !settings?.some((setting) => setting === name) && !(Array.isArray(value) && value.length === 0),
    );
    const next: PolicyLayer = Object.fromEntries(left);
    return refuseOrAccept(next, [
      ...missing.map((name) => `"${name}" is not set: see deprecation show`),
      ...checkPolicy({ ...layerPolicy(...defaults, next), brownouts: [] }, now),
    ]);
  };
}

/** Removes all of the operator's settings. */
export const clearLayer: Edit = () => ({ kind: 'edited', layer: {} });

function refuseOrAccept(layer: PolicyLayer, reasons: string[]): Edited {
  return reasons.length > 0 ? { kind: 'refused', reasons } : { kind: 'edited', layer };
}

/** Both lists; of items with the same key, the later one. */
function merge<T>(before: readonly T[] = [], added: readonly T[], keyOf: (item: T) => string): T[] {
  return [...new Map([...before, ...added].map((item) => [keyOf(item), item])).values()];
}

function idOf(exemption: Exemption): string {
  return 'keyId' in exemption ? exemption.keyId : exemption.organizationId;
}
