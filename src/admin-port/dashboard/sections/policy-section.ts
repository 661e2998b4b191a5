import {
  checkPolicy,
  daysToSunset,
  phaseAt,
  stateAt,
  verdictAt,
  type DeprecationPolicy,
  type Phase,
} from '../../../deprecation/policy/policy.ts';
import { html, joined, link, type Html } from '../../../lib/html.ts';
import { formatNumber } from '../../../lib/numbers.ts';
import { date, label, moment, span, svgLength } from '../components/text.ts';
import { hidden, section } from '../components/layout.ts';

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
        ${checkPolicy(policy, now).map((reason) => html`<p><strong>Warning:</strong> ${reason}</p>`)}
        ${linksOf(policy)}
      </div>
      ${milestones.length > 1 && timeline(milestones, now)} ${exemptionsOf(policy, now)}`,
  );
}

function summaryOf(
  policy: DeprecationPolicy,
  phase: Phase,
  now: number,
): Record<'headline' | 'sentence', Html> {
  const { sunsetAt, deprecatedAt, afterSunset } = policy;
  const verdict = verdictAt(policy, now);
  if (verdict !== 'serve' && verdict.gone === 'brownout') {
    return {
      headline: html`Brownout until ${moment(verdict.until)}`,
      sentence: html`Until then, calls are answered with 410.
      ${sunsetAt !== undefined && html`Sunset on ${date(sunsetAt)}.`}`,
    };
  }
  const after = afterSunset === 'gone' ? 'calls are answered with 410' : 'calls are still served';
  if (phase === 'sunset' && sunsetAt !== undefined) {
    return { headline: html`Sunset on ${date(sunsetAt)}`, sentence: html`Since then, ${after}.` };
  }
  const since =
    deprecatedAt !== undefined &&
    html`Deprecated ${deprecatedAt <= now ? 'since' : 'from'} ${date(deprecatedAt)}.`;
  if (sunsetAt !== undefined) {
    const days = daysToSunset(policy, now) ?? 0;
    return {
      headline: html`<strong>${formatNumber(days)}</strong> ${days === 1 ? 'day' : 'days'} to sunset`,
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

const brownoutNames = { past: 'Past brownout', open: 'Current brownout', planned: 'Brownout' };

/** The policy's dates and today, in order. */
function milestonesOf({ deprecatedAt, sunsetAt, brownouts }: DeprecationPolicy, now: number) {
  const point = (kind: string, name: string, at: number | undefined) =>
    at === undefined ? [] : [{ kind, name, start: at, end: at, when: date(at) }];
  return [
    ...point('deprecated', 'Deprecated', deprecatedAt),
    ...brownouts.map(({ start, end }) => ({
      kind: 'brownout',
      name: brownoutNames[stateAt({ start, end }, now)],
      start,
      end,
      when: span(start, end),
    })),
    ...point('today', 'Today', now),
    ...point('sunset', 'Sunset', sunsetAt),
  ].toSorted((a, b) => a.start - b.start);
}

function linksOf({ successorUrl, documentationUrl }: DeprecationPolicy): Html | false {
  const links = [
    { name: 'Successor', url: successorUrl },
    { name: 'Documentation', url: documentationUrl },
    // A path would lead to this port instead of the public one.
  ].flatMap(({ name, url }) => (url?.startsWith('http') ? [html`<li>${link(url, name)}</li>`] : []));
  return (
    links.length > 0 &&
    html`<ul class="links">
      ${links}
    </ul>`
  );
}

function exemptionsOf({ exemptions }: DeprecationPolicy, now: number): Html | false {
  const active = exemptions
    .filter(({ until }) => now < until)
    .map((e) => {
      const who = 'keyId' in e ? html`key ${label(e.keyId)}` : html`organization ${label(e.organizationId)}`;
      return html`${who} until ${moment(e.until)}`;
    });
  return (
    active.length > 0 && html`<p class="exempt">Exempt from brownouts and sunset: ${joined(active, '; ')}</p>`
  );
}

/** The narrowest mark that can be seen, as a share of the line. */
const minWidth = 0.003;

/** The milestones as a line to scale, and as a list. */
function timeline(milestones: ReturnType<typeof milestonesOf>, now: number): Html {
  const first = Math.min(...milestones.map(({ start }) => start));
  const last = Math.max(...milestones.map(({ end }) => end));
  // With a margin, so that the outermost marks are not cut off.
  const at = (ms: number) => 0.015 + (0.97 * (ms - first)) / Math.max(1, last - first);
  const x = (ms: number) => svgLength(at(ms));
  const marks = milestones.map(({ kind, start, end }) => {
    if (kind !== 'brownout') {
      return html`<circle class="${kind}" cx="${x(start)}" cy="14" r="${kind === 'today' ? 6 : 5}" />`;
    }
    const width = svgLength(Math.max(minWidth, at(end) - at(start)));
    return html`<rect class="brownout" x="${x(start)}" y="6" width="${width}" height="16" rx="1.5" />`;
  });
  return html`<div class="timeline">
    <svg aria-hidden="true" width="100%" height="28">
      <line x1="${x(first)}" x2="${x(last)}" y1="14" y2="14" />
      <line class="passed" x1="${x(first)}" x2="${x(now)}" y1="14" y2="14" />
      ${marks}
    </svg>
    <ol>
      ${milestones.map(
        ({ kind, name, when }) =>
          html`<li class="${kind}"><span class="name">${name}</span> <span>${when}</span></li>`,
      )}
    </ol>
  </div>`;
}
