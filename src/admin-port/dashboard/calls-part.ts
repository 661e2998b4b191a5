import { counted, number } from '../../lib/numbers.ts';
import { html, type Html } from '../../lib/html.ts';
import { colouredOperations } from './chart-data.ts';
import type { DashboardData } from './findings.ts';
import { sparkline } from './sparkline.ts';
import { ago, date, label, percent } from './text.ts';
import { trendText } from './trend.ts';

/** What is said where there is no call to draw: whether that means anything. */
export function silence({ days, operations }: DashboardData): Html | undefined {
  if (days.calls > 0) return undefined;
  const period = counted(days.rows.length, 'day');
  const before = operations.rows.some(({ lastSeen }) => lastSeen !== null);
  const verdict = {
    yes: html`<p>It was measured throughout: this zero is real.</p>`,
    partly: html`<p>
      But not all of it was measured, so there may have been calls nobody counted: see
      <a href="#coverage-heading">what was not measured</a>.
    </p>`,
    no: html`<p>
      Nobody was counting, so this says nothing. Counting begins by itself once the bridge serves the
      contract.
    </p>`,
  }[days.measured];
  const headline =
    days.measured === 'no' ? `Nothing was measured in these ${period}` : `No call in these ${period}`;
  return html`<div class="silence">
    <p class="headline">${headline}</p>
    ${verdict} ${before ? html`<p>There were calls before that: try a longer period.</p>` : undefined}
  </div>`;
}

/** The operations with their colours: the chart's legend, and its numbers. */
export function operationsPart(findings: DashboardData): Html {
  const { operations, days, now } = findings;
  const rows = colouredOperations(operations.rows.map(({ operation }) => operation ?? '')).flatMap(
    ({ name, colour }) =>
      operations.rows.filter((row) => row.operation === name).map((row) => ({ row, colour })),
  );
  if (rows.length === 0) return html``;
  const isKnown = days.rows.map(({ calls }) => calls !== null);
  return html`<table class="wide">
    <caption class="unseen">
      Calls by operation
    </caption>
    <thead>
      <tr>
        <th scope="col">Operation</th>
        <th scope="col" class="number">Calls</th>
        <th scope="col" class="number">Share</th>
        <th scope="col">Trend</th>
        <th scope="col" class="number">Week on week</th>
        <th scope="col">Last call</th>
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        ({ row, colour }) =>
          html`<tr>
            <th scope="row">
              <svg class="swatch" aria-hidden="true" width="10" height="10">
                <rect class="colour-${colour}" width="10" height="10" rx="2" />
              </svg>
              ${label(row.operation ?? '')}
            </th>
            <td class="number" data-name="Calls">${callsText(row.calls)}</td>
            <td class="number" data-name="Share">${percent(row.share)}</td>
            <td data-name="Trend">${sparkline(row.daily.map((n, i) => (isKnown[i] === true ? n : null)))}</td>
            <td class="number" data-name="Week on week">
              ${row.trend === null ? undefined : trendText(row.trend)}
            </td>
            <td data-name="Last call">${row.lastSeen === null ? '–' : ago(Date.parse(row.lastSeen), now)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

/** A row's calls; where nothing was measured, that and not nought. */
export function callsText(calls: number | null): Html {
  return calls === null ? html`<span class="unmeasured">not measured</span>` : html`${number(calls)}`;
}

/** The chart once more as a table, the latest day first. */
export function daysPart({ days, operations }: DashboardData): Html {
  const names = colouredOperations(
    operations.rows.filter((row) => (row.calls ?? 0) > 0).map(({ operation }) => operation ?? ''),
  ).map(({ name }) => name);
  return html`<table class="days">
    <caption class="unseen">
      Calls per day by operation
    </caption>
    <thead>
      <tr>
        <th scope="col">Day</th>
        <th scope="col" class="number">Calls</th>
        ${names.map((name) => html`<th scope="col" class="number">${label(name)}</th>`)}
        <th scope="col" class="number">Unattributed</th>
        <th scope="col">Measured</th>
      </tr>
    </thead>
    <tbody>
      ${days.rows.toReversed().map(
        (row) =>
          html`<tr>
            <th scope="row">${date(Date.parse(row.day ?? ''))}</th>
            <td class="number">${callsText(row.calls)}</td>
            ${names.map((name) => html`<td class="number">${row.calls === null ? '–' : number(row.operations[name] ?? 0)}</td>`)}
            <td class="number">${row.calls === null ? '–' : number(row.unattributed)}</td>
            <td>${row.measured}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}
