import type { Evidence } from '../../cutover/verdict/evidence.ts';
import { daysToSunset, type DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { groups } from '../../deprecation/reports/usage-query.ts';
import { dayName } from '../../lib/days.ts';
import { html, joined, skipLink, type Html } from '../../lib/html.ts';
import { counted, formatNumber } from '../../lib/numbers.ts';
import type { AdminProblem } from '../problem.ts';
import { choices } from './components/layout.ts';
import { moment, visible } from './components/text.ts';
import { maxOrganizations, type DashboardData } from './dashboard-data.ts';
import { addressOf, csvAddress, parametersOf, periods, type DashboardQuery } from './query.ts';
import { callsSection } from './sections/calls-section.ts';
import {
  breakdownSection,
  callingSection,
  quietSection,
  unattributedSection,
} from './sections/clients-section.ts';
import { cutoverSection } from './sections/cutover-section.ts';
import { coverageSection, figuresSection } from './sections/figures-section.ts';
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
  cutover: Evidence | undefined,
): string {
  const csvLinks = Array.from(
    new Set([...groups, query.groupBy.join()]),
    (group) => html`<a href="${csvAddress(query, group)}">by ${group}</a>`,
  );
  const body = html`${pageHeader(signedIn, html`As of ${moment(data.now)} UTC`)}
    <main id="content">
      ${policySection(policy, now)} ${cutover && cutoverSection(cutover)}
      ${filters(query, data.organizations)} ${figuresSection(data)} ${callsSection(data)}
      ${coverageSection(data)} ${callingSection(data, query)} ${quietSection(data, query)}
      ${unattributedSection(data)} ${breakdownSection(data, query)}
    </main>
    <footer>
      <p>All times are UTC; a day is a UTC day.</p>
      <p>CSV: ${joined(csvLinks, ' · ')}</p>
    </footer>`;
  return renderShell(titleOf(policy, now), body, 'live');
}

/** The page if the data cannot be shown: the policy, the reason and the remedy. */
export function renderProblem({ policy, now, signedIn }: PageOptions, problem: AdminProblem): string {
  const { title, detail, remedy } = problem;
  const body = html`${pageHeader(signedIn)}
    <main id="content">
      ${policySection(policy, now)}
      <section class="problem" role="alert">
        <h2>${title}</h2>
        <p>${detail}</p>
        <p>${remedy}</p>
        <p><a href="">Try again</a> · <a href="/">Show the last 30 days</a></p>
      </section>
    </main>`;
  return renderShell(title, body);
}

function pageHeader(signedIn: boolean, updated?: Html): Html {
  return html`${skipLink}
    <header>
      <h1><a href="/">Profile Bridge</a> <span>Deprecation</span></h1>
      <div class="state">
        <p id="updated">${updated}</p>
        <p id="status" role="status"></p>
      </div>
      ${signedIn && html`<form method="post" action="/logout"><button class="plain">Sign out</button></form>`}
    </header>`;
}

function titleOf(policy: DeprecationPolicy, now: number): string {
  const days = daysToSunset(policy, now) ?? 0;
  return days > 0 ? `${counted(days, 'day')} to sunset` : 'Deprecation';
}

/** The choice of an organization and a period, as links and forms: the address has the whole state. */
function filters(query: DashboardQuery, organizations: readonly string[]): Html {
  const { organizationId, days, firstDay, lastDay } = query;
  const [from, to] = [dayName(firstDay), dayName(lastDay)];
  /** What a form does not change. */
  const others = (...own: string[]) =>
    Object.entries(parametersOf(query))
      .filter(([name, value]) => value !== undefined && !own.includes(name))
      .map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`);
  const listed = new Set([...organizations, ...(organizationId === undefined ? [] : [organizationId])]);
  return html`<div class="filters">
    <form action="/">
      <label for="organization">Organization</label>
      <select id="organization" name="organization">
        <option value="">All organizations</option>
        ${[...listed]
          .sort()
          .map(
            (id) =>
              html`<option value="${id}" ${id === organizationId && 'selected'}>${visible(id)}</option>`,
          )}
      </select>
      ${others('organization')}
      <button>Show</button>
      ${
        organizations.length === maxOrganizations &&
        html`<small>
          The ${formatNumber(maxOrganizations)} that called last; for another, add
          <code>?organization=ID</code> to this page's address.
        </small>`
      }
    </form>
    ${choices(
      'Period',
      periods.map((n) => ({
        address: addressOf(query, { days: n }),
        text: counted(n, 'day'),
        isShown: n === days,
      })),
    )}
    <details id="dates" ${days === undefined && 'open'}>
      <summary>Other dates</summary>
      <form action="/">
        ${others('from', 'to', 'days')}
        <label for="from">From</label>
        <input id="from" name="from" type="date" required value="${from}" />
        <label for="to">To</label>
        <input id="to" name="to" type="date" required value="${to}" />
        <button>Show</button>
      </form>
    </details>
  </div>`;
}
