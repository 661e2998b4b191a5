import { html, type Html } from '../../lib/html.ts';
import { counted } from '../../lib/numbers.ts';
import { dayMs } from '../../deprecation/ledger/days.ts';
import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import { daysPart, operationsPart, silence } from './calls-part.ts';
import { chartData, type ChartData } from './chart-data.ts';
import { quietDays } from './clients.ts';
import { callingPart, quietPart, unattributedPart } from './clients-part.ts';
import { coveragePart } from './coverage-part.ts';
import { figuresPart } from './figures-part.ts';
import { filters } from './filters.ts';
import type { DashboardData } from './findings.ts';
import { policyPart } from './policy-part.ts';
import { addressOf, csvAddress, type DashboardQuery } from './query.ts';
import { renderShell } from './shell.ts';
import { moment } from './text.ts';

export interface DashboardOptions {
  policy: DeprecationPolicy;
  query: DashboardQuery;
  findings: DashboardData;
  /** Whether there is a session to end. */
  signedIn: boolean;
}

/** What of the page changes while it is open: markup by the id of the element that holds it. */
function partsOf({ policy, query, findings }: DashboardOptions) {
  return {
    policy: policyPart(policy, findings.now),
    figures: figuresPart(findings),
    silence: silence(findings) ?? html``,
    operations: operationsPart(findings),
    days: daysPart(findings),
    coverage: coveragePart(findings),
    calling: callingPart(findings, query),
    quiet: quietPart(findings, query),
    unattributed: unattributedPart(findings),
    updated: html`As of ${moment(findings.now)} UTC`,
  };
}

/** What an open page fetches to be up to date. */
export interface LiveUpdate {
  parts: Record<string, string>;
  chart: ChartData;
}

/** The parts of the page as of now. */
export function liveUpdate(options: DashboardOptions): LiveUpdate {
  const parts = Object.entries(partsOf(options)).map(([id, { markup }]) => [id, markup] as const);
  return { parts: Object.fromEntries(parts), chart: chartData(options.findings) };
}

/** The dashboard: complete without scripts, but for the chart, whose table stands below it. */
export function renderDashboard(options: DashboardOptions): string {
  const { query, findings, signedIn } = options;
  const parts = partsOf(options);
  const part = (id: keyof typeof parts) => html`<div id="${id}" data-part>${parts[id]}</div>`;
  const body = html`
    ${bar(signedIn, part('updated'))}
    <main id="content" data-live="/live${addressOf(query)}">
      <section aria-labelledby="policy-heading">
        <h2 id="policy-heading" class="unseen">Where the deprecation stands</h2>
        ${part('policy')}
      </section>
      ${filters(query, findings.organizations)}
      <section aria-labelledby="figures-heading">
        <h2 id="figures-heading" class="unseen">At a glance</h2>
        ${part('figures')}
      </section>
      <section aria-labelledby="calls-heading">
        <h2 id="calls-heading">Calls per day</h2>
        ${part('silence')}
        <div id="chart" ${findings.days.calls === 0 ? 'hidden' : undefined}>
          <p class="readout">Drawing the chart …</p>
        </div>
        <noscript
          ><p class="none">The chart needs JavaScript; the table below has the same numbers.</p></noscript
        >
        ${part('operations')}
        <details id="days-table">
          <summary>Every day as a table</summary>
          <div class="scroll" role="region" aria-label="Every day as a table" tabindex="0">
            ${part('days')}
          </div>
        </details>
      </section>
      <section aria-labelledby="coverage-heading">
        <h2 id="coverage-heading">What was not measured</h2>
        ${part('coverage')}
      </section>
      <section aria-labelledby="calling-heading">
        <h2 id="calling-heading">Clients calling</h2>
        <p class="lead">Called within the last ${quietDays} days.</p>
        ${part('calling')}
      </section>
      <section aria-labelledby="quiet-heading">
        <h2 id="quiet-heading">Gone quiet</h2>
        <p class="lead">Known to the ledger, but not heard of for ${quietDays} days or more.</p>
        ${part('quiet')}
      </section>
      <section aria-labelledby="unattributed-heading">
        <h2 id="unattributed-heading">Unattributed calls</h2>
        <p class="lead">Without a valid key, by the organization they claimed.</p>
        ${part('unattributed')}
      </section>
    </main>
    <footer>
      <p>All times are UTC; a day is a UTC day.</p>
      <p>
        CSV:
        ${(['client', 'operation', 'organization', 'day', 'status'] as const).map(
          (group, i) => html`${i > 0 ? ' · ' : ''}<a href="${csvAddress(query, group)}">by ${group}</a>`,
        )}
      </p>
    </footer>
    ${dataBlock(chartData(findings))}
  `;
  return renderShell({ title: titleOf(options), body, live: true });
}

/** The page where there is nothing to show on: what is wrong, and what to do. The policy is known even so. */
export function renderTrouble(options: {
  policy: DeprecationPolicy;
  now: number;
  title: string;
  details: readonly string[];
  remedy: string;
  signedIn: boolean;
}): string {
  const { policy, now, title, details, remedy, signedIn } = options;
  const body = html`
    ${bar(signedIn, undefined)}
    <main id="content">
      <section aria-labelledby="policy-heading">
        <h2 id="policy-heading" class="unseen">Where the deprecation stands</h2>
        <div id="policy">${policyPart(policy, now)}</div>
      </section>
      <section class="trouble" role="alert">
        <h2>${title}</h2>
        ${details.map((detail) => html`<p>${detail}</p>`)}
        <p>${remedy}</p>
        <p><a href="">Try again</a> · <a href="/">Show the last 30 days</a></p>
      </section>
    </main>
  `;
  return renderShell({ title: `${title} · Profile Bridge`, body, live: false });
}

function bar(signedIn: boolean, updated: Html | undefined): Html {
  return html`<a class="skip" href="#content">Skip to the content</a>
    <header class="bar">
      <h1><a href="/">Profile Bridge</a> <span>Deprecation</span></h1>
      <div class="state">
        ${updated}
        <p id="status" role="status"></p>
      </div>
      ${
        signedIn
          ? html`<form method="post" action="/logout"><button class="plain">Sign out</button></form>`
          : undefined
      }
    </header>`;
}

function titleOf({ policy, findings }: DashboardOptions): string {
  const { sunsetAt } = policy;
  const days = sunsetAt === undefined ? 0 : Math.ceil((sunsetAt - findings.now) / dayMs);
  return days > 0 ? `${counted(days, 'day')} to sunset · Profile Bridge` : 'Deprecation · Profile Bridge';
}

/** JSON for the page's module; nothing in it can end the element. */
function dataBlock(data: ChartData): Html {
  const json = JSON.stringify(data).replaceAll('<', '\\u003c');
  return { markup: `<script type="application/json" id="chart-data">${json}</script>` };
}
