import { html, type Html } from '../../../lib/html.ts';
import { counted, number } from '../../../lib/numbers.ts';
import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';
import { callsChart, colouredOperations } from '../components/chart.ts';
import { section, table, type Column } from '../components/layout.ts';
import { ago, callsText, date, label, percent, trendText, visible } from '../components/text.ts';
import { trendLine, type DashboardData } from '../dashboard-data.ts';

/** Calls per day as a chart, by operation, and every day as a table. */
export function callsSection(data: DashboardData): Html {
  const { days, operations, now } = data;
  return section(
    'calls',
    'Calls per day',
    html`${days.calls > 0 ? callsChart(days, operations, now) : noCalls(data)}
      ${operations.rows.length > 0 ? operationsTable(data) : undefined}
      <details id="days">
        <summary>Every day as a table</summary>
        <div class="scroll" role="region" aria-label="Every day as a table" tabindex="0">
          ${daysTable(data)}
        </div>
      </details>`,
  );
}

/** Instead of an empty chart: whether no call was made, or none was measured. */
function noCalls({ days, operations }: DashboardData): Html {
  const period = counted(days.rows.length, 'day');
  const explanation = {
    yes: html`<p>The whole period was measured: nobody called.</p>`,
    partly: html`<p>
      Part of the period was not measured, so there may have been calls: see
      <a href="#coverage-heading">what was not measured</a>.
    </p>`,
    no: html`<p>
      Nothing was counting, so calls may have been made. Counting starts as soon as the bridge serves the API.
    </p>`,
  }[days.measured];
  return html`<div class="empty">
    <p class="headline">
      ${days.measured === 'no' ? `Nothing was measured in these ${period}` : `No calls in these ${period}`}
    </p>
    ${explanation}
    ${
      operations.rows.some(({ lastSeen }) => lastSeen !== null)
        ? html`<p>There were calls before: choose a longer period.</p>`
        : undefined
    }
  </div>`;
}

/** The operations with their colours: the chart's legend, and its totals. */
function operationsTable(data: DashboardData): Html {
  const { operations, now } = data;
  const columns: Column<{ row: ReportRow; name: string; colour: number }>[] = [
    {
      title: 'Operation',
      cell: ({ name, colour }) =>
        html`<svg class="swatch" aria-hidden="true" width="10" height="10">
            <rect class="colour-${colour}" width="10" height="10" rx="2" />
          </svg>
          ${label(name)}`,
    },
    { title: 'Calls', numeric: true, cell: ({ row }) => callsText(row.calls) },
    { title: 'Share', numeric: true, cell: ({ row }) => percent(row.share) },
    { title: 'Trend', cell: ({ row }) => trendLine(row, data) },
    { title: 'Week on week', numeric: true, cell: ({ row }) => trendText(row.trend) },
    { title: 'Last call', cell: ({ row }) => ago(row.lastSeen, now) },
  ];
  return table('Calls by operation', columns, colouredOperations(operations));
}

/** The figures of the chart, the latest day first. */
function daysTable({ days, operations }: DashboardData): Html {
  const called = colouredOperations(operations).filter(({ row }) => (row.calls ?? 0) > 0);
  const columns: Column<ReportRow>[] = [
    { title: 'Day', cell: ({ day }) => date(Date.parse(day ?? '')) },
    { title: 'Calls', numeric: true, cell: ({ calls }) => callsText(calls) },
    ...called.map(({ name }) => ({
      title: visible(name),
      numeric: true,
      cell: (row: ReportRow) => (row.calls === null ? '–' : number(row.operations[name] ?? 0)),
    })),
    {
      title: 'Unattributed',
      numeric: true,
      cell: ({ calls, unattributed }) => (calls === null ? '–' : number(unattributed)),
    },
    { title: 'Measured', cell: ({ measured }) => measured },
  ];
  return table('Calls per day by operation', columns, days.rows.toReversed(), 'days');
}
