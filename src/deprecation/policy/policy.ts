import { formatInstant, formatWindow, parseInstant, type Parsed, type Window } from '../../lib/iso8601.ts';
import { parseLink } from './links.ts';

/** What the operator has decided about the end of this API. Times are ms since the epoch. */
export interface DeprecationPolicy {
  deprecatedAt?: number;
  sunsetAt?: number;
  successorUrl?: string;
  documentationUrl?: string;
  /** Where `rel="sunset"` points; the deprecation document when absent. */
  sunsetUrl?: string;
  afterSunset: 'serve' | 'gone';
  brownouts: Window[];
  exemptOrganizations: { organizationId: string; until: number }[];
  exemptKeys: { keyId: string; until: number }[];
}

/** One source of the policy; what it does not set, the layer below decides. */
export type PolicyLayer = Partial<DeprecationPolicy>;

/** The layers lowest first (openapi.yaml's `x-deprecation`, environment, operator) made into one policy. */
export function layerPolicy(...layers: readonly PolicyLayer[]): DeprecationPolicy {
  const nothing = { afterSunset: 'serve', brownouts: [], exemptOrganizations: [], exemptKeys: [] } as const;
  return Object.assign({}, nothing, ...layers) as DeprecationPolicy;
}

/** The plain facts as openapi.yaml's `x-deprecation` and the environment write them. */
export interface PolicyFields {
  deprecatedAt?: string | undefined;
  sunsetAt?: string | undefined;
  successor?: string | undefined;
  documentation?: string | undefined;
  sunsetDocumentation?: string | undefined;
  afterSunset?: string | undefined;
}

export type ReadLayer = { kind: 'ok'; layer: PolicyLayer } | { kind: 'invalid'; reasons: string[] };

const linkFields = {
  successor: 'successorUrl',
  documentation: 'documentationUrl',
  sunsetDocumentation: 'sunsetUrl',
} as const;

/** Reads written facts (ISO 8601 times, links as `parseLink` takes them, serve|gone) as a layer, or gives every reason it cannot. */
export function readPolicyFields(fields: PolicyFields): ReadLayer {
  const layer: PolicyLayer = {};
  const reasons: string[] = [];
  const take = <T>(parsed: Parsed<T>, keep: (value: T) => void): void => {
    if (parsed.kind === 'ok') keep(parsed.value);
    else reasons.push(parsed.reason);
  };
  for (const name of ['deprecatedAt', 'sunsetAt'] as const) {
    const text = fields[name];
    if (text !== undefined) take(parseInstant(text), (value) => (layer[name] = value));
  }
  for (const name of ['successor', 'documentation', 'sunsetDocumentation'] as const) {
    const text = fields[name];
    if (text !== undefined) take(parseLink(text), (value) => (layer[linkFields[name]] = value));
  }
  const { afterSunset } = fields;
  if (afterSunset === 'serve' || afterSunset === 'gone') layer.afterSunset = afterSunset;
  else if (afterSunset !== undefined) {
    reasons.push(`after sunset the API can "serve" or be "gone", not "${afterSunset}"`);
  }
  return reasons.length > 0 ? { kind: 'invalid', reasons } : { kind: 'ok', layer };
}

/**
 * Why this policy cannot be (empty when it can): a sunset before the deprecation, windows that overlap, lie
 * wholly in the past at `now` (ms) or end before they begin, links that `parseLink` refuses. A window may have
 * begun already.
 */
export function checkPolicy(policy: DeprecationPolicy, now: number): string[] {
  const reasons: string[] = [];
  const { deprecatedAt, sunsetAt } = policy;
  if (deprecatedAt !== undefined && sunsetAt !== undefined && sunsetAt < deprecatedAt) {
    reasons.push(
      `the sunset (${formatInstant(sunsetAt)}) is before the deprecation (${formatInstant(deprecatedAt)})`,
    );
  }
  for (const url of [policy.successorUrl, policy.documentationUrl, policy.sunsetUrl]) {
    if (url === undefined) continue;
    const parsed = parseLink(url);
    if (parsed.kind === 'invalid') reasons.push(parsed.reason);
  }
  const windows = policy.brownouts.toSorted((a, b) => a.start - b.start || a.end - b.end);
  let previous: Window | undefined;
  for (const window of windows) {
    if (window.end <= window.start) reasons.push(`brownout ${formatWindow(window)} ends before it begins`);
    else if (window.end <= now) reasons.push(`brownout ${formatWindow(window)} lies wholly in the past`);
    if (previous !== undefined && window.start < previous.end) {
      reasons.push(`brownouts ${formatWindow(previous)} and ${formatWindow(window)} overlap`);
    }
    if (previous === undefined || window.end > previous.end) previous = window;
  }
  return reasons;
}

/**
 * Where the API stands: `none` (nothing announced), `announced`, `brownout` (a window is open), `sunset` (its
 * date has come, whether or not it is still served).
 */
export type Phase = 'none' | 'announced' | 'brownout' | 'sunset';

/** The phase at `now` (ms). */
export function phaseAt(policy: DeprecationPolicy, now: number): Phase {
  const past = policy.sunsetAt !== undefined && now >= policy.sunsetAt;
  if (past && policy.afterSunset === 'gone') return 'sunset';
  if (openWindow(policy, now) !== undefined) return 'brownout';
  if (past) return 'sunset';
  const announced = policy.deprecatedAt !== undefined || policy.sunsetAt !== undefined;
  return announced || policy.brownouts.length > 0 ? 'announced' : 'none';
}

/** Whether a call is served, or refused with 410: until the window's end (ms), or for good. */
export type Verdict = 'serve' | { gone: 'brownout'; until: number } | { gone: 'sunset' };

/** Who may claim an exemption. */
export interface Claimant {
  organizationId?: string | undefined;
  keyId?: string | undefined;
}

/** The verdict on a call at `now` (ms). A live exemption of the claimant's organization or key serves it. */
export function verdictAt(policy: DeprecationPolicy, now: number, claimant: Claimant): Verdict {
  const verdict = generalVerdict(policy, now);
  return verdict === 'serve' || isExempt(policy, now, claimant) ? 'serve' : verdict;
}

/**
 * Whether the caller must be authenticated before a verdict can be given: only while the API is gone, and an
 * exemption lives for the organization the call claims to come from, or for some key. Otherwise `verdictAt`
 * with an empty claimant is final, before any other work. If authentication then fails, that verdict holds too.
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

function generalVerdict(policy: DeprecationPolicy, now: number): Verdict {
  if (policy.sunsetAt !== undefined && now >= policy.sunsetAt && policy.afterSunset === 'gone') {
    return { gone: 'sunset' };
  }
  const window = openWindow(policy, now);
  return window === undefined ? 'serve' : { gone: 'brownout', until: window.end };
}

function openWindow(policy: DeprecationPolicy, now: number): Window | undefined {
  return policy.brownouts.find(({ start, end }) => start <= now && now < end);
}

function isExempt(policy: DeprecationPolicy, now: number, { organizationId, keyId }: Claimant): boolean {
  return (
    (organizationId !== undefined &&
      policy.exemptOrganizations.some((e) => e.organizationId === organizationId && now < e.until)) ||
    (keyId !== undefined && policy.exemptKeys.some((e) => e.keyId === keyId && now < e.until))
  );
}
