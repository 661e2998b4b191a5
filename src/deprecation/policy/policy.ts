import {
  formatInstant,
  formatInterval,
  parseInstant,
  type Parsed,
  type Interval,
} from '../../lib/iso8601.ts';
import { parseLink } from './links.ts';

/** The deprecation policy of this API. Times are ms since the epoch. */
export interface DeprecationPolicy {
  deprecatedAt?: number;
  sunsetAt?: number;
  successorUrl?: string;
  documentationUrl?: string;
  /** Where `rel="sunset"` points; the deprecation document when absent. */
  sunsetUrl?: string;
  afterSunset: 'serve' | 'gone';
  brownouts: Interval[];
  exemptOrganizations: OrganizationExemption[];
  exemptKeys: KeyExemption[];
}

interface OrganizationExemption {
  organizationId: string;
  until: number;
}

interface KeyExemption {
  keyId: string;
  until: number;
}

export type Exemption = OrganizationExemption | KeyExemption;

/** One source of the policy. Settings that it leaves out come from the layer below. */
export type PolicyLayer = Partial<DeprecationPolicy>;

/** Merges the layers, lowest first: openapi.yaml's `x-deprecation`, environment, operator. */
export function layerPolicy(...layers: readonly PolicyLayer[]): DeprecationPolicy {
  const nothing = { afterSunset: 'serve', brownouts: [], exemptOrganizations: [], exemptKeys: [] } as const;
  return Object.assign({}, nothing, ...layers) as DeprecationPolicy;
}

/** Settings as openapi.yaml's `x-deprecation`, the environment and the command line write them. */
export type PolicyFields = Partial<
  Record<
    'deprecatedAt' | 'sunsetAt' | 'successor' | 'documentation' | 'sunsetDocumentation' | 'afterSunset',
    string | undefined
  >
>;

type ReadLayer =
  | { kind: 'ok'; layer: PolicyLayer }
  | { kind: 'invalid'; mistakes: { field: keyof PolicyFields; reason: string }[] };

/** Reads settings as they are written, as a layer: ISO 8601 times, links as `parseLink` takes them, serve|gone. */
export function readPolicyFields(fields: PolicyFields): ReadLayer {
  const mistakes: { field: keyof PolicyFields; reason: string }[] = [];
  const read = <T>(field: keyof PolicyFields, parse: (text: string) => Parsed<T>): T | undefined => {
    const text = fields[field];
    const parsed = text === undefined ? undefined : parse(text);
    if (parsed?.kind === 'invalid') mistakes.push({ field, reason: parsed.reason });
    return parsed?.kind === 'ok' ? parsed.value : undefined;
  };
  const layer: { [Name in keyof PolicyLayer]: PolicyLayer[Name] | undefined } = {
    deprecatedAt: read('deprecatedAt', parseInstant),
    sunsetAt: read('sunsetAt', parseInstant),
    successorUrl: read('successor', parseLink),
    documentationUrl: read('documentation', parseLink),
    sunsetUrl: read('sunsetDocumentation', parseLink),
    afterSunset: read('afterSunset', parseAfterSunset),
  };
  if (mistakes.length > 0) return { kind: 'invalid', mistakes };
  const given = Object.entries(layer).filter(([, value]) => value !== undefined);
  return { kind: 'ok', layer: Object.fromEntries(given) };
}

function parseAfterSunset(text: string): Parsed<'serve' | 'gone'> {
  if (text === 'serve' || text === 'gone') return { kind: 'ok', value: text };
  return { kind: 'invalid', reason: `"${text}" is neither serve nor gone` };
}

/**
 * What is wrong with a policy at `now` (ms): a sunset before the deprecation, or windows that overlap, end before they
 * begin or are wholly in the past. A window may have begun already.
 */
export function checkPolicy(policy: DeprecationPolicy, now: number): string[] {
  const reasons: string[] = [];
  const { deprecatedAt, sunsetAt } = policy;
  if (deprecatedAt !== undefined && sunsetAt !== undefined && sunsetAt < deprecatedAt) {
    reasons.push(
      `the sunset (${formatInstant(sunsetAt)}) is before the deprecation (${formatInstant(deprecatedAt)})`,
    );
  }
  const windows = policy.brownouts.toSorted((a, b) => a.start - b.start || a.end - b.end);
  let previous: Interval | undefined;
  for (const window of windows) {
    if (window.end <= window.start) reasons.push(`brownout ${formatInterval(window)} ends before it begins`);
    else if (window.end <= now) reasons.push(`brownout ${formatInterval(window)} is wholly in the past`);
    if (previous !== undefined && window.start < previous.end) {
      reasons.push(`brownouts ${formatInterval(previous)} and ${formatInterval(window)} overlap`);
    }
    if (previous === undefined || window.end > previous.end) previous = window;
  }
  return reasons;
}

/**
 * `none` (nothing announced), `announced`, `brownout` (a window is open), or `sunset` (the date has passed, whether or
 * not the API is still served).
 */
export const phases = ['none', 'announced', 'brownout', 'sunset'] as const;
export type Phase = (typeof phases)[number];

/** The phase at `now` (ms). */
export function phaseAt(policy: DeprecationPolicy, now: number): Phase {
  const past = policy.sunsetAt !== undefined && now >= policy.sunsetAt;
  if (past && policy.afterSunset === 'gone') return 'sunset';
  if (openWindow(policy, now) !== undefined) return 'brownout';
  if (past) return 'sunset';
  const announced = policy.deprecatedAt !== undefined || policy.sunsetAt !== undefined;
  return announced || policy.brownouts.length > 0 ? 'announced' : 'none';
}

/** Whether a call is served or refused with 410: until the end of a window (ms), or for good. */
export type Verdict = 'serve' | { gone: 'brownout'; until: number } | { gone: 'sunset' };

/** Who may claim an exemption. */
interface Claimant {
  organizationId?: string | undefined;
  keyId?: string | undefined;
}

/** The verdict on a call at `now` (ms), which an exemption of its organization or key can change to `serve`. */
export function verdictAt(policy: DeprecationPolicy, now: number, claimant: Claimant): Verdict {
  const verdict = generalVerdict(policy, now);
  return verdict === 'serve' || isExempt(policy, now, claimant) ? 'serve' : verdict;
}

/**
 * Whether the verdict depends on who calls: only while the API is gone, and there is an exemption for the organization
 * that the call claims, or for any key. Otherwise `verdictAt` with an empty claimant is final, before any other work;
 * it also applies if authentication fails.
 */
export function requiresAuthentication(
  policy: DeprecationPolicy,
  now: number,
  claimedOrganizationId: string | undefined,
): boolean {
  if (generalVerdict(policy, now) === 'serve') return false;
  return (
    policy.exemptKeys.some(({ until }) => now < until) ||
    isExempt(policy, now, { organizationId: claimedOrganizationId })
  );
}

/** Until when (ms) every caller is served: the first brownout, or the sunset if that ends the API. */
export function servesAllUntil({ brownouts, sunsetAt, afterSunset }: DeprecationPolicy): number {
  const sunset = afterSunset === 'gone' ? sunsetAt : undefined;
  return Math.min(sunset ?? Infinity, ...brownouts.map(({ start }) => start));
}

function generalVerdict(policy: DeprecationPolicy, now: number): Verdict {
  if (policy.sunsetAt !== undefined && now >= policy.sunsetAt && policy.afterSunset === 'gone') {
    return { gone: 'sunset' };
  }
  const window = openWindow(policy, now);
  return window === undefined ? 'serve' : { gone: 'brownout', until: window.end };
}

function openWindow(policy: DeprecationPolicy, now: number): Interval | undefined {
  return policy.brownouts.find(({ start, end }) => start <= now && now < end);
}

function isExempt(policy: DeprecationPolicy, now: number, { organizationId, keyId }: Claimant): boolean {
  return (
    (organizationId !== undefined &&
      policy.exemptOrganizations.some((e) => e.organizationId === organizationId && now < e.until)) ||
    (keyId !== undefined && policy.exemptKeys.some((e) => e.keyId === keyId && now < e.until))
  );
}
