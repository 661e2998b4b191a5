import { html, type Html } from '../../../lib/html.ts';
import { counted, formatNumber } from '../../../lib/numbers.ts';
import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';
import { callsChart } from '../components/chart.ts';
import { section, swatch, table, usageColumns, type Column } from '../components/layout.ts';
import { date, label, visible } from '../components/text.ts';
import type { DashboardData } from '../dashboard-data.ts';

/** Calls per day as a chart, by operation, and every day as a table. */
export function callsSection(data: DashboardData): Html {
  const { days, operations } = data;
  return section(
    'calls',
    'Calls per day',
    html`${days.calls > 0 ? callsChart(data) : noCalls(data)}
      ${operations.length > 0 && operationsTable(data)}
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
  const count = days.rows.length;
  const period = count === 1 ? 'on this day' : `in these ${counted(count, 'day')}`;
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
      ${days.measured === 'no' ? `Nothing was measured ${period}` : `No calls ${period}`}
    </p>
    ${explanation}
    ${
      operations.some(({ lastSeen }) => lastSeen !== null) &&
      html`<p>There are calls at other times: choose another period.</p>`
    }
  </div>`;
}

/** The operations with their colours: the chart's legend, and its totals. */
function operationsTable(data: DashboardData): Html {
  const { calls, share, trend, weekOnWeek, lastCall } = usageColumns(data);
  const operation: Column<DashboardData['operations'][number]> = {
    title: 'Operation',
    cell: ({ name, colour }) => html`${swatch(`colour-${colour}`)} ${label(name)}`,
  };
  const columns = [operation, calls, share, trend, weekOnWeek, lastCall];
  return table('Calls by operation', columns, data.operations);
}

/** The figures of the chart, the latest day first. */
function daysTable(data: DashboardData): Html {
  const called = data.operations.filter(({ calls }) => (calls ?? 0) > 0);
  const columns: Column<ReportRow>[] = [
    { title: 'Day', cell: ({ day }) => date(Date.parse(day ?? '')) },
    usageColumns(data).calls,
    ...called.map(({ name }) => ({
      title: visible(name),
      numeric: true,
      cell: (row: ReportRow) => (row.calls === null ? '–' : formatNumber(row.operations[name] ?? 0)),
    })),
    {
      title: 'Unattributed',
      numeric: true,
      cell: ({ calls, unattributed }) => (calls === null ? '–' : formatNumber(unattributed)),
    },
    { title: 'Measured', cell: ({ measured }) => measured },
  ];
  return table('Calls per day by operation', columns, data.days.rows.toReversed(), { className: 'days' });
}
