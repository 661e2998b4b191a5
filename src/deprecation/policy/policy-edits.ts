import { parseInstant, parseWindow, type Parsed, type Window } from '../../lib/iso8601.ts';
import { checkPolicy, layerPolicy, readPolicyFields, type PolicyLayer } from './policy.ts';

/** What `admin deprecation set` was given, as written. Exemptions keep the order of the flags. */
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

/** What `admin deprecation clear` was given; nothing at all clears everything the operator has set. */
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
 * The operator's layer with the flags set: windows and exemptions are added to those there, everything else
 * replaces. Refused, with every reason, where a flag cannot be read or the policy that results over `defaults`
 * at `now` (ms) is impossible. Windows that have passed stay on record and are not judged again.
 */
export function setInLayer(
  layer: PolicyLayer,
  defaults: readonly PolicyLayer[],
  flags: SetFlags,
  now: number,
): Edited {
  const read = readPolicyFields({
    deprecatedAt: flags.deprecatedAt,
    sunsetAt: flags.sunset,
    successor: flags.successor,
    documentation: flags.documentation,
    afterSunset: flags.afterSunset,
  });
  const reasons = read.kind === 'invalid' ? read.reasons : [];
  const collect = <T>(parsed: Parsed<T>): T[] => {
    if (parsed.kind === 'ok') return [parsed.value];
    reasons.push(parsed.reason);
    return [];
  };
  // A window that is there already is no other one: the same command twice is the same policy.
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
    const until = collect(parseInstant(exemption.until))[0];
    if (until === undefined) continue;
    if (until <= now) reasons.push(`the exemption of "${id}" ends in the past (${exemption.until})`);
    if ('keyId' in exemption) {
      const others = (next.exemptKeys ?? []).filter(({ keyId }) => keyId !== id);
      next.exemptKeys = [...others, { keyId: id, until }];
    } else {
      const others = (next.exemptOrganizations ?? []).filter(({ organizationId }) => organizationId !== id);
      next.exemptOrganizations = [...others, { organizationId: id, until }];
    }
  }
  const judged = (next.brownouts ?? []).filter((window) => window.end > now || added.includes(window));
  const policy = layerPolicy(...defaults, { ...next, brownouts: judged });
  if (reasons.length === 0) reasons.push(...checkPolicy(policy, now));
  return reasons.length > 0 ? { kind: 'refused', reasons } : { kind: 'edited', layer: next };
}

const clearedBy = {
  deprecatedAt: 'deprecatedAt',
  sunset: 'sunsetAt',
  successor: 'successorUrl',
  documentation: 'documentationUrl',
  afterSunset: 'afterSunset',
} as const;

/**
 * The operator's layer without what the flags name, so that the defaults below hold again. Refused where a
 * window or an exemption is named that is not there, or where what then holds is impossible.
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
  for (const name of ['deprecatedAt', 'sunset', 'successor', 'documentation', 'afterSunset'] as const) {
    if (flags[name] === true) delete next[clearedBy[name]];
  }
  const without = <T>(list: readonly T[] | undefined, names: readonly string[] | undefined, is: Match<T>) => {
    const missing = (names ?? []).filter((name) => !(list ?? []).some((item) => is(item, name)));
    reasons.push(...missing.map((name) => `"${name}" is not set; see what is by: deprecation show`));
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
  if (reasons.length === 0)
    reasons.push(...checkPolicy({ ...layerPolicy(...defaults, next), brownouts: [] }, now));
  return reasons.length > 0 ? { kind: 'refused', reasons } : { kind: 'edited', layer: next };
}

type Match<T> = (item: T, name: string) => boolean;

function isWindow(window: Window, name: string): boolean {
  const whole = parseWindow(name);
  if (whole.kind === 'ok') return window.start === whole.value.start && window.end === whole.value.end;
  const start = parseInstant(name);
  return start.kind === 'ok' && window.start === start.value;
}
