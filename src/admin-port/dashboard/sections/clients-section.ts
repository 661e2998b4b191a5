import { html, type Html } from '../../../lib/html.ts';
import { counted, number } from '../../../lib/numbers.ts';
import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';
import { limitedTable, section, type Column } from '../components/layout.ts';
import { usageColumns } from '../components/columns.ts';
import { ago, callsText, date, label } from '../components/text.ts';
import { quietDays, type DashboardData } from '../dashboard-data.ts';
import { addressOf, type DashboardQuery } from '../query.ts';

/** Clients with recent calls, the latest first. */
export function callingSection(data: DashboardData, query: DashboardQuery): Html {
  const { calling, clients } = data;
  const { calls, trend, weekOnWeek, lastCall } = usageColumns(data);
  const none =
    clients.measured === 'no'
      ? 'Nothing was counting, so it is unknown whether anybody calls.'
      : `No client has called in the last ${quietDays} days.`;
  const columns = [lastCall, calls, trend, weekOnWeek, { title: 'Operations', cell: operationsOf }];
  return section(
    'calling',
    'Clients calling',
    clientsTable('Clients that call, the latest first', columns, calling, query, none),
    `Called within the last ${quietDays} days.`,
  );
}

/** Clients that have stopped calling, the latest first, and whether that silence was measured. */
export function quietSection({ quiet, now }: DashboardData, query: DashboardQuery): Html {
  const columns: Column<ReportRow>[] = [
    {
      title: 'Quiet since',
      cell: ({ lastSeen }) => html`${date(Date.parse(lastSeen ?? ''))} <small>${ago(lastSeen, now)}</small>`,
    },
    {
      title: 'Silence measured',
      cell: ({ quietMeasured }) =>
        quietMeasured === true ? 'throughout' : html`<span class="unmeasured">not throughout</span>`,
    },
    { title: 'Calls in the period', numeric: true, cell: ({ calls }) => callsText(calls) },
    {
      title: 'First call',
      cell: ({ firstSeen }) => (firstSeen === null ? '–' : date(Date.parse(firstSeen))),
    },
  ];
  return section(
    'quiet',
    'Quiet clients',
    clientsTable('Quiet clients, the latest first', columns, quiet, query, 'No client has gone quiet.'),
    `Have called before, but not in the last ${quietDays} days.`,
  );
}

/** Calls without a valid key, by the organization they claimed. */
export function unattributedSection({ unattributed, clients, now }: DashboardData): Html {
  const rows = unattributed.filter((row) => (row.calls ?? 0) > 0);
  const none = clients.measured === 'no' ? 'Not measured.' : 'None: every call counted had a valid key.';
  return section(
    'unattributed',
    'Unattributed calls',
    rows.length === 0
      ? html`<p class="none">${none}</p>`
      : html`<ul>
          ${rows.map(
            (row) =>
              html`<li>
                <span>${row.organization == null ? 'unknown organizations' : label(row.organization)}</span>
                <span class="number">${number(row.calls ?? 0)}</span>
                <small>last call ${ago(row.lastSeen, now)}</small>
              </li>`,
          )}
        </ul>`,
    'Calls without a valid key, by the organization they claimed.',
  );
}

function clientsTable(
  caption: string,
  columns: readonly Column<ReportRow>[],
  clients: readonly ReportRow[],
  query: DashboardQuery,
  none: string,
): Html {
  if (clients.length === 0) return html`<p class="none">${none}</p>`;
  const name: Column<ReportRow> = { title: 'Client', cell: (row) => nameOf(row, query) };
  return limitedTable(caption, [name, ...columns], clients, 'wide clients', query);
}

function nameOf({ client, organization, userAgents, keyIds, keys }: ReportRow, query: DashboardQuery): Html {
  const facts = [
    counted(keys, 'key'),
    ...(userAgents.length > 0 ? [counted(userAgents.length, 'user agent')] : []),
  ];
  return html`${label(client ?? '')}
    <div class="facts">
      ${
        query.organizationId === undefined && organization != null
          ? html`<a href="${addressOf({ ...query, organizationId: organization })}"
              >${label(organization)}</a
            >`
          : undefined
      }
      ${
        keys + userAgents.length === 0
          ? undefined
          : html`<details>
              <summary>${facts.join(', ')}</summary>
              <ul>
                ${keyIds.map((id) => html`<li><code>${label(id)}</code></li>`)}
                ${keys > keyIds.length ? html`<li>and ${counted(keys - keyIds.length, 'more key')}</li>` : undefined}
                ${userAgents.map(({ userAgent }) => html`<li>${label(userAgent)}</li>`)}
              </ul>
            </details>`
      }
    </div>`;
}

function operationsOf({ operations }: ReportRow): Html {
  const names = Object.entries(operations).toSorted(([, a], [, b]) => b - a);
  return html`<ul class="operations">
    ${names.map(([operation, calls]) => html`<li title="${counted(calls, 'call')}">${label(operation)}</li>`)}
  </ul>`;
}
