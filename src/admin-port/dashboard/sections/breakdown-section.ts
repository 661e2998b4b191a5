import { html, type Html } from '../../../lib/html.ts';
import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';
import { type Group, type UsageQuery } from '../../../deprecation/reports/usage-query.ts';
import { limitedTable, section, type Column } from '../components/layout.ts';
import { usageColumns } from '../components/columns.ts';
import { label } from '../components/text.ts';
import type { DashboardData } from '../dashboard-data.ts';
import { addressOf, type DashboardQuery } from '../query.ts';

const choices: UsageQuery['groupBy'][] = [
  ['client', 'status'],
  ['client', 'operation'],
  ['client', 'operation', 'status'],
  ['organization', 'operation'],
  ['operation', 'status'],
  ['day', 'status'],
];

/** Calls by the groups in the page's address, such as client and status. */
export function breakdownSection(data: DashboardData, query: DashboardQuery): Html {
  const { groupBy } = query;
  const rows = data.breakdown.rows.filter(({ calls }) => calls !== 0);
  const nameOf = (row: ReportRow, group: Group) =>
    group === 'organization' && row.organization === null ? '(unknown)' : (row[group] ?? '');
  const names = groupBy.includes('client') ? (['organization', ...groupBy] as const) : groupBy;
  const { calls, share, trend, weekOnWeek, lastCall } = usageColumns(data);
  const columns: Column<ReportRow>[] = [
    ...Array.from(new Set(names), (group) => ({
      title: group[0]?.toUpperCase() + group.slice(1),
      cell: (row: ReportRow) => label(nameOf(row, group)),
    })),
    calls,
    share,
    ...(groupBy.includes('day') ? [] : [trend, weekOnWeek]),
    ...(groupBy.includes('day') || groupBy.includes('status') ? [] : [lastCall]),
  ];
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
