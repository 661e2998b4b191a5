import {
  checkPolicy,
  daysToSunset,
  describeExempt,
  phaseAt,
  stateAt,
  type DeprecationPolicy,
} from '../../../deprecation/policy/policy.ts';
import { relativeTime } from '../../../lib/days.ts';
import { formatInstant, formatInterval } from '../../../lib/iso8601.ts';
import { list } from '../../../lib/system/terminal.ts';

export type PolicyView = ReturnType<typeof viewPolicy>;

/** The policy at `now` (ms), as `admin deprecation show --json` prints it: null for what is not set. */
export function viewPolicy(policy: DeprecationPolicy, now: number) {
  const { deprecatedAt, sunsetAt, documentationUrl = null } = policy;
  const instant = (ms: number | undefined) => (ms === undefined ? null : formatInstant(ms));
  const exemptions = policy.exemptions.map((exemption) => ({
    ...exemption,
    until: formatInstant(exemption.until),
    live: now < exemption.until,
  }));
  return {
    phase: phaseAt(policy, now),
    /** Whole days left, rounded up; 0 from the sunset on. */
    daysToSunset: daysToSunset(policy, now) ?? null,
    deprecatedAt: instant(deprecatedAt),
    sunsetAt: instant(sunsetAt),
    afterSunset: policy.afterSunset,
    successorUrl: policy.successorUrl ?? null,
    documentationUrl,
    sunsetUrl: policy.sunsetUrl ?? documentationUrl,
    brownouts: policy.brownouts.map((brownout) => ({
      start: formatInstant(brownout.start),
      end: formatInstant(brownout.end),
      state: stateAt(brownout, now),
    })),
    exemptOrganizations: exemptions.filter((exemption) => 'organizationId' in exemption),
    exemptKeys: exemptions.filter((exemption) => 'keyId' in exemption),
    warnings: checkPolicy(policy, now),
  };
}

/** The same as lines for a terminal: the settings, then all dates in order with now (ms) among them. */
export function policyLines(policy: DeprecationPolicy, now: number): string[] {
  const { deprecatedAt, sunsetAt, brownouts, exemptions } = policy;
  const left = (at: number) => (at > now ? relativeTime(at - now) : 'past');
  const after = policy.afterSunset === 'gone' ? '410' : 'still served';
  const settings = list([
    ['phase', phaseAt(policy, now)],
    ['deprecated at', deprecatedAt === undefined ? 'not set' : formatInstant(deprecatedAt)],
    [
      'sunset',
      sunsetAt === undefined ? 'not set' : `${formatInstant(sunsetAt)} (${left(sunsetAt)}), then ${after}`,
    ],
    ['successor', policy.successorUrl ?? 'not set'],
    ['documentation', policy.documentationUrl ?? 'not set'],
    ...(policy.sunsetUrl === undefined ? [] : [['sunset page', policy.sunsetUrl] as const]),
    ...brownouts.map((b) => ['brownout', `${formatInterval(b)} (${stateAt(b, now)})`] as const),
    ...exemptions.map((e) => {
      const end = `until ${formatInstant(e.until)}${now < e.until ? '' : ' (over)'}`;
      return ['exempt', `${describeExempt(e)} ${end}`] as const;
    }),
    ...checkPolicy(policy, now).map((reason) => ['warning', reason] as const),
  ]).split('\n');
  const dates = timeline(policy, now);
  return dates.length === 0 ? settings : [...settings, '', ...dates];
}

function timeline(policy: DeprecationPolicy, now: number): string[] {
  const { deprecatedAt, sunsetAt, afterSunset, brownouts, exemptions } = policy;
  const sunset = afterSunset === 'gone' ? 'sunset: gone from here on' : 'sunset: still served';
  const dates: [at: number, what: string][] = [
    ...brownouts.map(({ start, end }): [number, string] => [start, `brownout until ${formatInstant(end)}`]),
    ...exemptions.map((e): [number, string] => [e.until, `exemption of ${describeExempt(e)} ends`]),
  ];
  if (deprecatedAt !== undefined) dates.unshift([deprecatedAt, 'deprecated']);
  if (sunsetAt !== undefined) dates.push([sunsetAt, sunset]);
  if (dates.length === 0) return [];
  return [...dates, [now, undefined] as const]
    .toSorted(([a], [b]) => a - b)
    .map(([at, what]) => {
      const when = formatInstant(Math.floor(at / 1000) * 1000);
      return what === undefined
        ? `> ${when}  now: ${phaseAt(policy, now)}`
        : `  ${when}  ${what} (${relativeTime(at - now)})`;
    });
}
