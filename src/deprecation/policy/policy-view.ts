import { counted } from '../../lib/numbers.ts';
import { dayMs } from '../../lib/days.ts';
import { formatInstant } from '../../lib/iso8601.ts';
import { phaseAt, type DeprecationPolicy, type Phase } from './policy.ts';

/** The policy as operators and machines read it: ISO 8601 times, null where nothing is set. */
export interface PolicyView {
  phase: Phase;
  /** Whole days left, rounded up; 0 once it has come; null without a sunset. */
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

const instant = (ms: number | undefined) => (ms === undefined ? null : formatInstant(ms));

/** What `admin deprecation show --json` prints and the dashboard draws, at `now` (ms). */
export function viewPolicy(policy: DeprecationPolicy, now: number): PolicyView {
  const until = (ms: number) => ({ until: formatInstant(ms), live: now < ms });
  return {
    phase: phaseAt(policy, now),
    daysToSunset:
      policy.sunsetAt === undefined ? null : Math.max(0, Math.ceil((policy.sunsetAt - now) / dayMs)),
    deprecatedAt: instant(policy.deprecatedAt),
    sunsetAt: instant(policy.sunsetAt),
    afterSunset: policy.afterSunset,
    successorUrl: policy.successorUrl ?? null,
    documentationUrl: policy.documentationUrl ?? null,
    sunsetUrl: policy.sunsetUrl ?? policy.documentationUrl ?? null,
    brownouts: policy.brownouts
      .toSorted((a, b) => a.start - b.start)
      .map(({ start, end }) => ({
        start: formatInstant(start),
        end: formatInstant(end),
        state: end <= now ? 'past' : start <= now ? 'open' : 'planned',
      })),
    exemptOrganizations: policy.exemptOrganizations.map(({ organizationId, until: end }) => ({
      organizationId,
      ...until(end),
    })),
    exemptKeys: policy.exemptKeys.map(({ keyId, until: end }) => ({ keyId, ...until(end) })),
  };
}

/** The same as lines of text for a terminal. */
export function policyLines(view: PolicyView): string[] {
  const days = view.daysToSunset === null ? '' : ` (${counted(view.daysToSunset, 'day')} from now)`;
  return [
    `phase          ${view.phase}`,
    `deprecated at  ${view.deprecatedAt ?? 'not set'}`,
    `sunset         ${view.sunsetAt === null ? 'not set' : `${view.sunsetAt}${days}, then ${view.afterSunset}`}`,
    `successor      ${view.successorUrl ?? 'not set'}`,
    `documentation  ${view.documentationUrl ?? 'not set'}`,
    ...view.brownouts.map(({ start, end, state }) => `brownout       ${start}/${end} (${state})`),
    ...[
      ...view.exemptOrganizations.map((e) => ({ ...e, who: `organization ${e.organizationId}` })),
      ...view.exemptKeys.map((e) => ({ ...e, who: `key ${e.keyId}` })),
    ].map(({ who, until, live }) => `exempt         ${who} until ${until}${live ? '' : ' (over)'}`),
  ];
}
