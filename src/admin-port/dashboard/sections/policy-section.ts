import { dayMs } from '../../../lib/days.ts';
import { html, link, type Html } from '../../../lib/html.ts';
import { number } from '../../../lib/numbers.ts';
import { phaseAt, type DeprecationPolicy, type Phase } from '../../../deprecation/policy/policy.ts';
import { hidden, section } from '../components/layout.ts';
import { date, label, moment, span } from '../components/text.ts';
import { timeline, type Milestone } from '../components/timeline.ts';

const phaseNames: Record<Phase, string> = {
  none: 'Not announced',
  announced: 'Announced',
  brownout: 'Brownout',
  sunset: 'Sunset',
};

/** The phase of the deprecation at `now` (ms), its dates and its exemptions. */
export function policySection(policy: DeprecationPolicy, now: number): Html {
  const phase = phaseAt(policy, now);
  const { headline, sentence } = summaryOf(policy, phase, now);
  const milestones = milestonesOf(policy, now);
  return section(
    'policy',
    hidden('Status of the deprecation'),
    html`<div class="summary">
        <p class="phase ${phase}">${phaseNames[phase]}</p>
        <p class="headline">${headline}</p>
        <p class="sentence">${sentence}</p>
        ${linksOf(policy)}
      </div>
      ${milestones.length > 1 ? timeline(milestones, now) : undefined} ${exemptionsOf(policy, now)}`,
  );
}

function summaryOf(
  policy: DeprecationPolicy,
  phase: Phase,
  now: number,
): { headline: Html; sentence: Html | undefined } {
  const { sunsetAt, deprecatedAt } = policy;
  const window = policy.brownouts.find(({ start, end }) => start <= now && now < end);
  const after = policy.afterSunset === 'gone' ? 'calls are answered with 410' : 'calls are still served';
  if (phase === 'brownout' && window !== undefined) {
    return {
      headline: html`Brownout until ${moment(window.end)}`,
      sentence: html`Until then, calls are answered with 410.
      ${sunsetAt === undefined ? undefined : html`Sunset on ${date(sunsetAt)}.`}`,
    };
  }
  if (phase === 'sunset' && sunsetAt !== undefined) {
    return { headline: html`Sunset on ${date(sunsetAt)}`, sentence: html`Since then, ${after}.` };
  }
  const since =
    deprecatedAt === undefined
      ? undefined
      : html`Deprecated ${deprecatedAt <= now ? 'since' : 'from'} ${date(deprecatedAt)}.`;
  if (sunsetAt !== undefined) {
    const days = Math.ceil((sunsetAt - now) / dayMs);
    return {
      headline: html`<strong>${number(days)}</strong> ${days === 1 ? 'day' : 'days'} to sunset`,
      sentence: html`${since} After ${moment(sunsetAt)} UTC, ${after}.`,
    };
  }
  const [headline, option] =
    phase === 'none' ? ['No deprecation announced', '--deprecated-at'] : ['No sunset date yet', '--sunset'];
  return {
    headline: html`${headline}`,
    sentence: html`${since} Set the date with <code>profile-bridge admin deprecation set ${option} …</code>`,
  };
}

function milestonesOf({ deprecatedAt, sunsetAt, brownouts }: DeprecationPolicy, now: number): Milestone[] {
  const point = (kind: Milestone['kind'], name: string, at: number | undefined): Milestone[] =>
    at === undefined ? [] : [{ kind, name, start: at, end: at, when: date(at) }];
  return [
    ...point('deprecated', 'Deprecated', deprecatedAt),
    ...brownouts.map(({ start, end }) => ({
      kind: 'brownout' as const,
      name: end <= now ? 'Past brownout' : start <= now ? 'Current brownout' : 'Brownout',
      start,
      end,
      when: span(start, end),
    })),
    ...point('today', 'Today', now),
    ...point('sunset', 'Sunset', sunsetAt),
  ].toSorted((a, b) => a.start - b.start);
}

function linksOf({ successorUrl, documentationUrl }: DeprecationPolicy): Html | undefined {
  const links = [
    [successorUrl, 'Successor'] as const,
    [documentationUrl, 'Documentation'] as const,
    // A path belongs to the public port.
  ].flatMap(([url, name]) => (url?.startsWith('http') === true ? [html`<li>${link(url, name)}</li>`] : []));
  if (links.length === 0) return undefined;
  return html`<ul class="links">
    ${links}
  </ul>`;
}

function exemptionsOf({ exemptOrganizations, exemptKeys }: DeprecationPolicy, now: number): Html | undefined {
  const active = [
    ...exemptOrganizations.map((e) => ({ ...e, who: html`organization ${label(e.organizationId)}` })),
    ...exemptKeys.map((e) => ({ ...e, who: html`key ${label(e.keyId)}` })),
  ].filter(({ until }) => now < until);
  if (active.length === 0) return undefined;
  return html`<p class="exempt">
    Exempt from brownouts and sunset:
    ${active.map(({ who, until }, i) => html`${i > 0 ? '; ' : ''}${who} until ${moment(until)}`)}
  </p>`;
}
