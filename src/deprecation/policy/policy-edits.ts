import { parseInstant, parseWindow, type Parsed, type Window } from '../../lib/iso8601.ts';
import {
  checkPolicy,
  layerPolicy,
  readPolicyFields,
  type DeprecationPolicy,
  type PolicyLayer,
} from './policy.ts';

/** The options of `admin deprecation set`, as written. Exemptions keep their order. */
export interface SetFlags {
  deprecatedAt?: string | undefined;
  sunset?: string | undefined;
  successor?: string | undefined;
  documentation?: string | undefined;
  afterSunset?: string | undefined;
  brownout?: readonly string[] | undefined;
  exemptions?: readonly Exemption[] | undefined;
}

export type Exemption = ({ organizationId: string } | { keyId: string }) & { until?: string | undefined };

/** The options of `admin deprecation clear`; without any, everything the operator has set is cleared. */
export interface ClearFlags {
  deprecatedAt?: boolean | undefined;
  sunset?: boolean | undefined;
  successor?: boolean | undefined;
  documentation?: boolean | undefined;
  afterSunset?: boolean | undefined;
  /** Windows as they were set, or only their starts. */
  brownout?: readonly string[] | undefined;
  exemptOrg?: readonly string[] | undefined;
  exemptKey?: readonly string[] | undefined;
}

export type Edited = { kind: 'edited'; layer: PolicyLayer } | { kind: 'refused'; reasons: string[] };

/**
 * The operator's layer with the flags set: windows and exemptions are added, everything else replaces what was set.
 * Refused, with every reason, if a flag cannot be read or the resulting policy over `defaults` is invalid at `now`
 * (ms). Windows that have passed stay on record and are not checked again.
 */
export function setInLayer(
  layer: PolicyLayer,
  defaults: readonly PolicyLayer[],
  flags: SetFlags,
  now: number,
): Edited {
  const read = readPolicyFields({ ...flags, sunsetAt: flags.sunset });
  const reasons = read.kind === 'invalid' ? read.mistakes.map(({ reason }) => reason) : [];
  const collect = <T>(parsed: Parsed<T>): T[] => {
    if (parsed.kind === 'ok') return [parsed.value];
    reasons.push(parsed.reason);
    return [];
  };
  // The same window again is not a second one: repeating a command changes nothing.
  const isNew = (window: Window): boolean =>
    !(layer.brownouts ?? []).some(({ start, end }) => start === window.start && end === window.end);
  const added = (flags.brownout ?? []).flatMap((text) => collect(parseWindow(text))).filter(isNew);
  const next: PolicyLayer = { ...layer, ...(read.kind === 'ok' ? read.layer : {}) };
  if (added.length > 0) next.brownouts = [...(layer.brownouts ?? []), ...added];
  for (const exemption of flags.exemptions ?? []) {
    const id = 'keyId' in exemption ? exemption.keyId : exemption.organizationId;
    if (exemption.until === undefined) {
      reasons.push(`the exemption of "${id}" needs an end: add --until 2027-01-31T12:00:00Z`);
      continue;
    }
    for (const until of collect(parseInstant(exemption.until))) {
      if (until <= now) reasons.push(`the exemption of "${id}" ends in the past (${exemption.until})`);
      if ('keyId' in exemption) {
        const others = (next.exemptKeys ?? []).filter(({ keyId }) => keyId !== id);
        next.exemptKeys = [...others, { keyId: id, until }];
      } else {
        const others = (next.exemptOrganizations ?? []).filter(({ organizationId }) => organizationId !== id);
        next.exemptOrganizations = [...others, { organizationId: id, until }];
      }
    }
  }
  const brownouts = (next.brownouts ?? []).filter((window) => window.end > now || added.includes(window));
  return checked(next, reasons, layerPolicy(...defaults, { ...next, brownouts }), now);
}

function checked(layer: PolicyLayer, reasons: string[], policy: DeprecationPolicy, now: number): Edited {
  if (reasons.length === 0) reasons.push(...checkPolicy(policy, now));
  return reasons.length > 0 ? { kind: 'refused', reasons } : { kind: 'edited', layer };
}

const clearedBy = {
  deprecatedAt: 'deprecatedAt',
  sunset: 'sunsetAt',
  successor: 'successorUrl',
  documentation: 'documentationUrl',
  afterSunset: 'afterSunset',
} as const;

/**
 * The operator's layer without what the flags name, so that the defaults apply again. Refused if a window or an
 * exemption is named that is not set, or if the resulting policy is invalid.
 */
export function clearInLayer(
  layer: PolicyLayer,
  defaults: readonly PolicyLayer[],
  flags: ClearFlags,
  now: number,
): Edited {
  if (Object.values(flags).every((value) => value === undefined || value === false)) {
    return { kind: 'edited', layer: {} };
  }
  const next: PolicyLayer = { ...layer };
  const reasons: string[] = [];
  for (const [flag, field] of Object.entries(clearedBy)) {
    if (flags[flag as keyof typeof clearedBy] === true) delete next[field];
  }
  const without = <T>(list: readonly T[] | undefined, names: readonly string[] | undefined, is: Match<T>) => {
    const missing = (names ?? []).filter((name) => !(list ?? []).some((item) => is(item, name)));
    reasons.push(...missing.map((name) => `"${name}" is not set: see deprecation show`));
    return (list ?? []).filter((item) => !(names ?? []).some((name) => is(item, name)));
  };
  next.brownouts = without(layer.brownouts, flags.brownout, isWindow);
  next.exemptOrganizations = without(
    layer.exemptOrganizations,
    flags.exemptOrg,
    ({ organizationId }, name) => organizationId === name,
  );
  next.exemptKeys = without(layer.exemptKeys, flags.exemptKey, ({ keyId }, name) => keyId === name);
  for (const list of ['brownouts', 'exemptOrganizations', 'exemptKeys'] as const) {
    if (next[list]?.length === 0) delete next[list];
  }
  return checked(next, reasons, { ...layerPolicy(...defaults, next), brownouts: [] }, now);
}

type Match<T> = (item: T, name: string) => boolean;

function isWindow(window: Window, name: string): boolean {
  const whole = parseWindow(name);
  if (whole.kind === 'ok') return window.start === whole.value.start && window.end === whole.value.end;
  const start = parseInstant(name);
  return start.kind === 'ok' && window.start === start.value;
}
