import { html, type Html } from '../../../lib/html.ts';
import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';
import { type Group, type UsageQuery } from '../../../deprecation/reports/usage-query.ts';
import { limitedTable, section, type Column } from '../components/layout.ts';
import { ago, callsText, label, percent, trendText } from '../components/text.ts';
import { trendLine, type DashboardData } from '../dashboard-data.ts';
import { addressOf, type DashboardQuery } from '../query.ts';

const choices: UsageQuery['groupBy'][] = [
  ['client', 'status'],
  ['client', 'operation'],
  ['client', 'operation', 'status'],
  ['organization', 'operation'],
  ['operation', 'status'],
  ['day', 'status'],
];

/** Calls by the groups that the address names, such as client and status. */
export function breakdownSection(data: DashboardData, query: DashboardQuery): Html {
  const { breakdown, now } = data;
  const { groupBy } = query;
  const rows = breakdown.rows.filter(({ calls }) => calls !== 0);
  const nameOf = (row: ReportRow, group: Group) =>
    group === 'organization' && row.organization === null ? '(unknown)' : (row[group] ?? '');
  const names = groupBy.includes('client') ? (['organization', ...groupBy] as const) : groupBy;
  const columns: Column<ReportRow>[] = Array.from(new Set(names), (group) => ({
    title: group[0]?.toUpperCase() + group.slice(1),
    cell: (row: ReportRow) => label(nameOf(row, group)),
  }));
  columns.push(
    { title: 'Calls', numeric: true, cell: ({ calls }) => callsText(calls) },
    { title: 'Share', numeric: true, cell: ({ share }) => percent(share) },
  );
  if (!groupBy.includes('day')) {
    columns.push(
      { title: 'Trend', cell: (row) => trendLine(row, data) },
      { title: 'Week on week', numeric: true, cell: ({ trend }) => trendText(trend) },
    );
    if (!groupBy.includes('status'))
      columns.push({ title: 'Last call', cell: (row) => ago(row.lastSeen, now) });
  }
  return section(
    'breakdown',
    `Calls by ${groupBy.join(', ')}`,
    html`<nav aria-label="Groups">
        <ul>
          ${choices.map(
            (choice) =>
              html`<li>
                <a
                  href="${addressOf(query, { groupBy: choice })}#breakdown"
                  ${choice.join() === groupBy.join() ? html`aria-current="true"` : undefined}
                  >${choice.join(', ')}</a
                >
              </li>`,
          )}
        </ul>
      </nav>
      ${
        rows.length === 0
          ? html`<p class="none">No calls.</p>`
          : limitedTable(`Calls by ${groupBy.join(', ')}`, columns, rows, 'wide', query)
      }`,
  );
}
