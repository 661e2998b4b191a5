import { dayMs } from '../../lib/days.ts';
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
  /** Where `rel="sunset"` points; if absent, to the deprecation document. */
  sunsetUrl?: string;
  afterSunset: 'serve' | 'gone';
  /** Sorted by their start. */
  brownouts: Interval[];
  exemptions: Exemption[];
}

/** Who is exempt from brownouts and the sunset: an organization, or a key by its public id. */
export type Exempt = { organizationId: string } | { keyId: string };
export type Exemption = Exempt & { until: number };

export function describeExempt(exempt: Exempt): string {
  return 'keyId' in exempt ? `key ${exempt.keyId}` : `organization ${JSON.stringify(exempt.organizationId)}`;
}

/** One source of the policy. Settings that it leaves out come from the layer below. */
export type PolicyLayer = Partial<DeprecationPolicy>;

/** Merges the layers, lowest first: openapi.yaml's `x-deprecation`, environment, operator. */
export function layerPolicy(...layers: readonly PolicyLayer[]): DeprecationPolicy {
  const settings: Pick<DeprecationPolicy, 'afterSunset'> = Object.assign({ afterSunset: 'serve' }, ...layers);
  const brownouts = layers.flatMap((layer) => layer.brownouts ?? []);
  return {
    ...settings,
    brownouts: brownouts.toSorted((a, b) => a.start - b.start),
    exemptions: layers.flatMap((layer) => layer.exemptions ?? []),
  };
}

/** How settings are written in openapi.yaml, in the environment and on the command line. */
export const settingParsers = {
  deprecatedAt: parseInstant,
  sunsetAt: parseInstant,
  successorUrl: parseLink,
  documentationUrl: parseLink,
  sunsetUrl: parseLink,
  afterSunset: parseAfterSunset,
} satisfies { [Name in keyof PolicyLayer]: (text: string) => Parsed<PolicyLayer[Name]> };

export type Setting = keyof typeof settingParsers;
export type WrittenSettings = Partial<Record<Setting, string | undefined>>;

/** Reads settings as they are written: a layer of those that can be read, and what is wrong with the others. */
export function readSettings(written: WrittenSettings) {
  const layer: PolicyLayer = {};
  const mistakes: { setting: Setting; reason: string }[] = [];
  for (const setting of Object.keys(settingParsers) as Setting[]) {
    const text = written[setting];
    if (text === undefined) continue;
    const parsed = settingParsers[setting](text);
    if (parsed.kind === 'ok') Object.assign(layer, { [setting]: parsed.value });
    else mistakes.push({ setting, reason: parsed.reason });
  }
  return { layer, mistakes };
}

function parseAfterSunset(text: string): Parsed<DeprecationPolicy['afterSunset']> {
  if (text === 'serve' || text === 'gone') return { kind: 'ok', value: text };
  return { kind: 'invalid', reason: `"${text}" is neither serve nor gone` };
}

/** What is wrong with a policy at `now` (ms): a sunset before the deprecation, or brownouts that overlap. */
export function checkPolicy(policy: DeprecationPolicy, now: number): string[] {
  const { deprecatedAt, sunsetAt } = policy;
  const reasons: string[] = [];
  if (deprecatedAt !== undefined && sunsetAt !== undefined && sunsetAt < deprecatedAt) {
    reasons.push(
      `the sunset (${formatInstant(sunsetAt)}) is before the deprecation (${formatInstant(deprecatedAt)})`,
    );
  }
  const coming = policy.brownouts.filter(({ end }) => end > now);
  for (const [i, brownout] of coming.entries()) {
    const other = coming.slice(0, i).find(({ end }) => brownout.start < end);
    if (other !== undefined) {
      reasons.push(`brownouts ${formatInterval(other)} and ${formatInterval(brownout)} overlap`);
    }
  }
  return reasons;
}

/**
 * `none` (nothing announced), `announced`, `brownout` (one is under way), or `sunset` (the date has passed, whether
 * or not the API is still served).
 */
export const phases = ['none', 'announced', 'brownout', 'sunset'] as const;
export type Phase = (typeof phases)[number];

/** The phase at `now` (ms). */
export function phaseAt(policy: DeprecationPolicy, now: number): Phase {
  const { deprecatedAt, sunsetAt, brownouts } = policy;
  const verdict = verdictAt(policy, now);
  if (verdict !== 'serve') return verdict.gone;
  if (sunsetAt !== undefined && now >= sunsetAt) return 'sunset';
  const isAnnounced = deprecatedAt !== undefined || sunsetAt !== undefined || brownouts.length > 0;
  return isAnnounced ? 'announced' : 'none';
}

/** Whole days to the sunset, rounded up, and 0 from then on; undefined if there is none. */
export function daysToSunset({ sunsetAt }: DeprecationPolicy, now: number): number | undefined {
  return sunsetAt === undefined ? undefined : Math.max(0, Math.ceil((sunsetAt - now) / dayMs));
}

/** Where a brownout stands at `now` (ms). */
export function stateAt({ start, end }: Interval, now: number): 'past' | 'open' | 'planned' {
  if (end <= now) return 'past';
  return start <= now ? 'open' : 'planned';
}

/** Whether a call is served or refused with 410: until the end of a brownout (ms), or for good. */
export type CallVerdict = 'serve' | { gone: 'brownout'; until: number } | { gone: 'sunset' };

/** The verdict on a call at `now` (ms) whose caller is not exempt. */
export function verdictAt(policy: DeprecationPolicy, now: number): CallVerdict {
  if (policy.sunsetAt !== undefined && now >= policy.sunsetAt && policy.afterSunset === 'gone') {
    return { gone: 'sunset' };
  }
  const brownout = policy.brownouts.find((window) => stateAt(window, now) === 'open');
  return brownout === undefined ? 'serve' : { gone: 'brownout', until: brownout.end };
}

/**
 * The exemptions at `now` (ms) that may apply to a call which claims an organization: that one's, and those of keys. If
 * there are none, the call can be refused without authentication.
 */
export function exemptionsFor(
  { exemptions }: DeprecationPolicy,
  now: number,
  claimedOrganizationId: string | undefined,
): Exemption[] {
  return exemptions.filter(
    (e) => now < e.until && ('keyId' in e || e.organizationId === claimedOrganizationId),
  );
}
