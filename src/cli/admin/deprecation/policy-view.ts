import { phaseAt, type DeprecationPolicy, type Phase } from '../../../deprecation/policy/policy.ts';
import { dayMs, relativeTime } from '../../../lib/days.ts';
import { formatInstant } from '../../../lib/iso8601.ts';
import { counted } from '../../../lib/numbers.ts';
import { list } from '../../../lib/system/terminal.ts';

/** The policy for operators and programs: ISO 8601 times, null for what is not set. */
export interface PolicyView {
  phase: Phase;
  /** Whole days left, rounded up; 0 from the sunset on; null without one. */
  daysToSunset: number | null;
  deprecatedAt: string | null;
  sunsetAt: string | null;
  afterSunset: 'serve' | 'gone';
  successorUrl: string | null;
  documentationUrl: string | null;
  sunsetUrl: string | null;
  brownouts: { start: string; end: string; state: 'past' | 'open' | 'planned' }[];
  exemptOrganizations: { organizationId: string; until: string; live: boolean }[];
  exemptKeys: { keyId: string; until: string; live: boolean }[];
}

/** The policy at `now` (ms), as `admin deprecation show --json` prints it. */
export function viewPolicy(policy: DeprecationPolicy, now: number): PolicyView {
  const { deprecatedAt, sunsetAt, documentationUrl } = policy;
  const instant = (ms: number | undefined) => (ms === undefined ? null : formatInstant(ms));
  const until = (ms: number) => ({ until: formatInstant(ms), live: now < ms });
  return {
    phase: phaseAt(policy, now),
    daysToSunset: sunsetAt === undefined ? null : Math.max(0, Math.ceil((sunsetAt - now) / dayMs)),
    deprecatedAt: instant(deprecatedAt),
    sunsetAt: instant(sunsetAt),
    afterSunset: policy.afterSunset,
    successorUrl: policy.successorUrl ?? null,
    documentationUrl: documentationUrl ?? null,
    sunsetUrl: policy.sunsetUrl ?? documentationUrl ?? null,
    brownouts: policy.brownouts
      .toSorted((a, b) => a.start - b.start)
      .map(({ start, end }) => ({
        start: formatInstant(start),
        end: formatInstant(end),
        state: end <= now ? 'past' : start <= now ? 'open' : 'planned',
      })),
    exemptOrganizations: policy.exemptOrganizations.map((e) => ({ ...e, ...until(e.until) })),
    exemptKeys: policy.exemptKeys.map((e) => ({ ...e, ...until(e.until) })),
  };
}

/** The same as lines for a terminal: the settings, then all dates in order with now (ms) among them. */
export function policyLines(view: PolicyView, now: number): string[] {
  const days = view.daysToSunset === null ? '' : ` (${counted(view.daysToSunset, 'day')} from now)`;
  const settings = list([
    ['phase', view.phase],
    ['deprecated at', view.deprecatedAt ?? 'not set'],
    [
      'sunset',
      view.sunsetAt === null
        ? 'not set'
        : `${view.sunsetAt}${days}, then ${view.afterSunset === 'gone' ? '410' : 'still served'}`,
    ],
    ['successor', view.successorUrl ?? 'not set'],
    ['documentation', view.documentationUrl ?? 'not set'],
    ...view.brownouts.map(({ start, end, state }) => ['brownout', `${start}/${end} (${state})`] as const),
    ...exemptionsOf(view).map(
      ({ who, until, live }) => ['exempt', `${who} until ${until}${live ? '' : ' (over)'}`] as const,
    ),
  ]).split('\n');
  const dates = timeline(view, now);
  return dates.length === 0 ? settings : [...settings, '', ...dates];
}

function timeline(view: PolicyView, now: number): string[] {
  const events: [at: string | null, what: string][] = [
    [view.deprecatedAt, 'deprecated'],
    ...view.brownouts.map(({ start, end }): [string, string] => [start, `brownout until ${end}`]),
    ...exemptionsOf(view).map(({ who, until }): [string, string] => [until, `exemption of ${who} ends`]),
    [view.sunsetAt, view.afterSunset === 'gone' ? 'sunset: gone from here on' : 'sunset: still served'],
  ];
  const dated = events.flatMap(([at, what]) => (at === null ? [] : [{ at: Date.parse(at), what }]));
  if (dated.length === 0) return [];
  return [...dated, { at: now, what: undefined }]
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, what }) => {
      const when = formatInstant(Math.floor(at / 1000) * 1000);
      return what === undefined
        ? `> ${when}  now: ${view.phase}`
        : `  ${when}  ${what} (${relativeTime(at - now)})`;
    });
}

function exemptionsOf({ exemptOrganizations, exemptKeys }: PolicyView) {
  return [
    ...exemptOrganizations.map((e) => ({ ...e, who: `organization ${e.organizationId}` })),
    ...exemptKeys.map((e) => ({ ...e, who: `key ${e.keyId}` })),
  ];
}
