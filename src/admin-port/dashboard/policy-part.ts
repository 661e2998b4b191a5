import { number } from '../../lib/numbers.ts';
import { html, link, type Html } from '../../lib/html.ts';
import { dayMs } from '../../deprecation/ledger/days.ts';
import { phaseAt, type DeprecationPolicy, type Phase } from '../../deprecation/policy/policy.ts';
import { date, label, moment, span } from './text.ts';
import { timeline, type Milestone } from './timeline.ts';

const phaseNames: Record<Phase, string> = {
  none: 'Not announced',
  announced: 'Announced',
  brownout: 'Brownout',
  sunset: 'Sunset',
};

/** Where the deprecation stands, what comes next, and when. */
export function policyPart(policy: DeprecationPolicy, now: number): Html {
  const phase = phaseAt(policy, now);
  const { headline, sentence } = situation(policy, phase, now);
  const milestones = milestonesOf(policy, now);
  return html`
    <div class="situation">
      <p class="phase ${phase}">${phaseNames[phase]}</p>
      <p class="headline">${headline}</p>
      <p class="sentence">${sentence}</p>
      ${linksOf(policy)}
    </div>
    ${milestones.length > 1 ? timeline(milestones, now) : undefined} ${exemptions(policy, now)}
  `;
}

function situation(
  policy: DeprecationPolicy,
  phase: Phase,
  now: number,
): { headline: Html; sentence: Html | undefined } {
  const { sunsetAt, deprecatedAt } = policy;
  const window = policy.brownouts.find(({ start, end }) => start <= now && now < end);
  const after = policy.afterSunset === 'gone' ? 'calls are answered 410' : 'calls are still served';
  if (phase === 'brownout' && window !== undefined) {
    return {
      headline: html`Switched off until ${moment(window.end)}`,
      sentence: html`Calls are answered 410 until then.
      ${sunsetAt === undefined ? undefined : html`Sunset on ${date(sunsetAt)}.`}`,
    };
  }
  if (phase === 'sunset' && sunsetAt !== undefined) {
    return { headline: html`Over since ${date(sunsetAt)}`, sentence: html`Since then ${after}.` };
  }
  const since =
    deprecatedAt === undefined
      ? undefined
      : deprecatedAt <= now
        ? html`Deprecated since ${date(deprecatedAt)}.`
        : html`Deprecated from ${date(deprecatedAt)} on.`;
  if (sunsetAt !== undefined) {
    const days = Math.ceil((sunsetAt - now) / dayMs);
    return {
      headline: html`<strong>${number(days)}</strong> ${days === 1 ? 'day' : 'days'} to sunset`,
      sentence: html`${since} After ${moment(sunsetAt)} UTC, ${after}.`,
    };
  }
  return phase === 'none'
    ? {
        headline: html`No deprecation is announced`,
        sentence: html`Announce it by <code>profile-bridge admin deprecation set --deprecated-at …</code>`,
      }
    : {
        headline: html`No sunset date yet`,
        sentence: html`${since} Set one by <code>profile-bridge admin deprecation set --sunset …</code>`,
      };
}

function milestonesOf(policy: DeprecationPolicy, now: number): Milestone[] {
  const { deprecatedAt, sunsetAt, brownouts } = policy;
  return [
    ...(deprecatedAt === undefined
      ? []
      : [
          {
            kind: 'deprecated' as const,
            start: deprecatedAt,
            end: deprecatedAt,
            name: 'Deprecated',
            when: date(deprecatedAt),
          },
        ]),
    ...brownouts.map(({ start, end }) => ({
      kind: 'brownout' as const,
      start,
      end,
      name: end <= now ? 'Brownout, over' : start <= now ? 'Brownout, now' : 'Brownout',
      when: span(start, end),
    })),
    { kind: 'today' as const, start: now, end: now, name: 'Today', when: date(now) },
    ...(sunsetAt === undefined
      ? []
      : [{ kind: 'sunset' as const, start: sunsetAt, end: sunsetAt, name: 'Sunset', when: date(sunsetAt) }]),
  ].toSorted((a, b) => a.start - b.start);
}

function linksOf({ successorUrl, documentationUrl }: DeprecationPolicy): Html | undefined {
  const links = [
    // The documentation may stand on the public port, where a path of it leads nowhere from here.
    [successorUrl, 'Successor'] as const,
    [documentationUrl, 'Documentation'] as const,
  ].flatMap(([url, name]) => (url?.startsWith('http') === true ? [html`<li>${link(url, name)}</li>`] : []));
  return links.length === 0
    ? undefined
    : html`<ul class="links">
        ${links}
      </ul>`;
}

function exemptions({ exemptOrganizations, exemptKeys }: DeprecationPolicy, now: number): Html | undefined {
  const live = [
    ...exemptOrganizations.map((e) => ({ ...e, who: html`organization ${label(e.organizationId)}` })),
    ...exemptKeys.map((e) => ({ ...e, who: html`key ${label(e.keyId)}` })),
  ].filter(({ until }) => now < until);
  if (live.length === 0) return undefined;
  return html`<p class="exempt">
    Exempt from brownouts and sunset:
    ${live.map(({ who, until }, i) => html`${i > 0 ? '; ' : ''}${who} until ${moment(until)}`)}
  </p>`;
}
