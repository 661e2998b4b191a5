import { formatInstant, formatInterval, type Interval } from '../../lib/iso8601.ts';
import {
  checkPolicy,
  describeExempt,
  layerPolicy,
  type Exempt,
  type PolicyLayer,
  type Setting,
} from './policy.ts';

/** An edit of the operator's layer, judged with the layers below it and as of `now` (ms). */
export type Edit = (layer: PolicyLayer, defaults: readonly PolicyLayer[], now: number) => Edited;

type Edited = { kind: 'edited'; layer: PolicyLayer } | { kind: 'refused'; reasons: string[] };

/**
 * Adds brownouts and exemptions; any other setting replaces the one before. Refused, with every reason, if an exemption
 * or a new brownout has ended or the policy would contradict itself in a way in which it does not already.
 */
export function setInLayer({ brownouts = [], exemptions = [], ...settings }: PolicyLayer): Edit {
  return (layer, defaults, now) => {
    const known = new Set(layer.brownouts?.map(formatInterval));
    const added = brownouts.filter((brownout) => !known.has(formatInterval(brownout)));
    const next: PolicyLayer = {
      ...layer,
      ...settings,
      brownouts: merge(layer.brownouts, added, formatInterval),
      exemptions: merge(layer.exemptions, exemptions, describeExempt),
    };
    return refuseOrAccept(next, [
      ...exemptions
        .filter(({ until }) => until <= now)
        .map((e) => `the exemption of ${describeExempt(e)} ends in the past (${formatInstant(e.until)})`),
      ...added
        .filter(({ end }) => end <= now)
        .map((brownout) => `brownout ${formatInterval(brownout)} is wholly in the past`),
      ...newContradictions([...defaults, layer], [...defaults, next], now),
    ]);
  };
}

/** What to remove from the operator's layer. */
export interface Removals {
  settings?: readonly Setting[];
  /** As `formatInterval` writes them, or only their starts as `formatInstant` does. */
  brownouts?: readonly string[];
  exemptions?: readonly Exempt[];
}

/**
 * Removes settings, brownouts and exemptions, so that the layers below apply again. Refused if a brownout or an
 * exemption is not set, or if the policy would contradict itself in a way in which it does not already.
 */
export function clearInLayer({ settings = [], brownouts = [], exemptions = [] }: Removals): Edit {
  return (layer, defaults, now) => {
    const before = { brownouts: [], exemptions: [], ...layer };
    const namesOf = (brownout: Interval) => [formatInterval(brownout), formatInstant(brownout.start)];
    const known = new Set([...before.brownouts.flatMap(namesOf), ...before.exemptions.map(describeExempt)]);
    const removed = [...brownouts, ...exemptions.map(describeExempt)];
    const next: PolicyLayer = {
      ...layer,
      brownouts: before.brownouts.filter((b) => !namesOf(b).some((name) => removed.includes(name))),
      exemptions: before.exemptions.filter((e) => !removed.includes(describeExempt(e))),
    };
    for (const setting of settings) delete next[setting];
    return refuseOrAccept(next, [
      ...removed
        .filter((name) => !known.has(name))
        .map((name) => `${brownouts.includes(name) ? 'brownout' : 'the exemption of'} ${name}`)
        .map((what) => `${what} is not set: see profile-bridge admin deprecation show`),
      ...newContradictions([...defaults, layer], [...defaults, next], now),
    ]);
  };
}

/** Removes all of the operator's settings. */
export const clearLayer: Edit = () => ({ kind: 'edited', layer: {} });

/**
 * What is wrong with the layers after an edit and was not before. What was, as where the environment has changed since, must
 * not keep the operator from ending a brownout.
 */
function newContradictions(
  before: readonly PolicyLayer[],
  after: readonly PolicyLayer[],
  now: number,
): string[] {
  const known = new Set(checkPolicy(layerPolicy(...before), now));
  return checkPolicy(layerPolicy(...after), now).filter((reason) => !known.has(reason));
}

function refuseOrAccept(layer: PolicyLayer, reasons: string[]): Edited {
  return reasons.length > 0 ? { kind: 'refused', reasons } : { kind: 'edited', layer };
}

/** Both lists; of items with the same key, the later one. */
function merge<T>(before: readonly T[] = [], added: readonly T[], keyOf: (item: T) => string): T[] {
  return [...new Map([...before, ...added].map((item) => [keyOf(item), item])).values()];
}
