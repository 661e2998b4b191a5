import { dayMs } from '../../lib/days.ts';
import { html, type Html } from '../../lib/html.ts';
import { counted } from '../../lib/numbers.ts';
import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { groups } from '../../deprecation/reports/usage-query.ts';
import type { AdminProblem } from '../problem.ts';
import { moment } from './components/text.ts';
import type { DashboardData } from './dashboard-data.ts';
import { filters } from './filters.ts';
import { csvAddress, type DashboardQuery } from './query.ts';
import { breakdownSection } from './sections/breakdown-section.ts';
import { callsSection } from './sections/calls-section.ts';
import { callingSection, quietSection, unattributedSection } from './sections/clients-section.ts';
import type { GatheredEvidence } from '../../cutover/verdict/evidence.ts';
import { coverageSection } from './sections/coverage-section.ts';
import { cutoverSection } from './sections/cutover-section.ts';
import { figuresSection } from './sections/figures-section.ts';
import { policySection } from './sections/policy-section.ts';
import { renderShell } from './shell.ts';

interface PageOptions {
  policy: DeprecationPolicy;
  /** ms */
  now: number;
  /** Whether there is a session to end. */
  signedIn: boolean;
}

/** The dashboard. The browser's script fetches it regularly and updates what has changed. */
export function renderDashboard(
  { policy, now, signedIn }: PageOptions,
  query: DashboardQuery,
  data: DashboardData,
  cutover: GatheredEvidence,
): string {
  const body = html`${bar(signedIn, html`As of ${moment(data.now)} UTC`)}
    <main id="content">
      ${policySection(policy, now)} ${cutoverSection(cutover)} ${filters(query, data.organizations)}
      ${figuresSection(data)} ${callsSection(data)} ${coverageSection(data)} ${callingSection(data, query)}
      ${quietSection(data, query)} ${unattributedSection(data)} ${breakdownSection(data, query)}
    </main>
    <footer>
      <p>All times are UTC; a day is a UTC day.</p>
      <p>
        CSV:
        ${[...groups, query.groupBy.join()].map(
          (group, i) => html`${i > 0 ? ' · ' : ''}<a href="${csvAddress(query, group)}">by ${group}</a>`,
        )}
      </p>
    </footer>`;
  return renderShell({ title: titleOf(policy, now), body, live: true });
}

/** The page if the data cannot be shown: the policy, the reason and the remedy. */
export function renderProblem({ policy, now, signedIn }: PageOptions, problem: AdminProblem): string {
  const { title, detail, remedy } = problem;
  const body = html`${bar(signedIn)}
    <main id="content">
      ${policySection(policy, now)}
      <section class="problem" role="alert">
        <h2>${title}</h2>
        <p>${detail}</p>
        <p>${remedy}</p>
        <p><a href="">Try again</a> · <a href="/">Show the last 30 days</a></p>
      </section>
    </main>`;
  return renderShell({ title: `${title} · Profile Bridge`, body, live: false });
}

function bar(signedIn: boolean, updated?: Html): Html {
  return html`<a class="skip" href="#content">Skip to the content</a>
    <header>
      <h1><a href="/">Profile Bridge</a> <span>Deprecation</span></h1>
      <div class="state">
        <p id="updated">${updated}</p>
        <p id="status" role="status"></p>
      </div>
      ${
        signedIn
          ? html`<form method="post" action="/logout"><button class="plain">Sign out</button></form>`
          : undefined
      }
    </header>`;
}

function titleOf({ sunsetAt }: DeprecationPolicy, now: number): string {
  const days = sunsetAt === undefined ? 0 : Math.ceil((sunsetAt - now) / dayMs);
  return days > 0 ? `${counted(days, 'day')} to sunset · Profile Bridge` : 'Deprecation · Profile Bridge';
}
