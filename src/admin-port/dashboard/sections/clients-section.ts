import { nameIn, type ReportRow } from '../../../deprecation/reports/group-usage.ts';
import type { UsageQuery } from '../../../deprecation/reports/usage-query.ts';
import { html, type Html } from '../../../lib/html.ts';
import { counted } from '../../../lib/numbers.ts';
import { ago, callsText, date, label } from '../components/text.ts';
import { quietDays, type DashboardData } from '../dashboard-data.ts';
import { addressOf, type DashboardQuery } from '../query.ts';
import { choices, section, table, usageColumns, type Column } from '../components/layout.ts';

const clientTable = {
  className: 'wide clients',
  keyOf: ({ organization, client, keys, keyIds: [keyId] }: ReportRow) =>
    // The label of a client may look like the name of another row.
    encodeURIComponent(JSON.stringify([organization, client, keys > 1 ? 'several keys' : keyId])),
};

/** Clients with recent calls, the latest first. */
export function callingSection(data: DashboardData, query: DashboardQuery): Html {
  const { calls, trend, weekOnWeek, lastCall } = usageColumns(data);
  const operations = { title: 'Operations', cell: operationsOf };
  const columns = [clientColumn(query), lastCall, calls, trend, weekOnWeek, operations];
  return section(
    'calling',
    'Clients calling',
    table('Clients that call, the latest first', columns, data.calling, {
      ...clientTable,
      none: noCalls(data),
      query,
    }),
    `Called within the last ${quietDays} days.`,
  );
}

/** What can be said if no client is known to have called. */
function noCalls({ days, uncheckedLately, servedLately }: DashboardData): string {
  if (days.measured === 'no') return 'Nothing was counting, so it is unknown whether anybody calls.';
  const known = `No client is known to have called in the last ${quietDays} days, but`;
  if (uncheckedLately) return `${known} calls came with a key that was not checked.`;
  if (servedLately) {
    return `${known} the legacy service may have served calls with an API key that is unknown here.`;
  }
  return `No client has called in the last ${quietDays} days.`;
}

/** Clients that have stopped calling, the latest first, and whether that silence was measured. */
export function quietSection({ quiet, uncheckedLately, now }: DashboardData, query: DashboardQuery): Html {
  const none = 'No client has gone quiet.';
  const columns: Column<ReportRow>[] = [
    clientColumn(query),
    {
      title: 'Quiet since',
      cell: ({ lastSeen }) =>
        lastSeen === null
          ? 'unknown'
          : html`${date(Date.parse(lastSeen))} <small>${ago(lastSeen, now)}</small>`,
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
    table('Quiet clients, the latest first', columns, quiet, { ...clientTable, none, query }),
    `Called before, but not in the last ${quietDays} days.${uncheckedLately ? ' Calls whose key was not checked may be theirs.' : ''}`,
  );
}

/** Calls without a valid key or with one that was not checked, by the organization they claimed. */
export function unattributedSection(data: DashboardData): Html {
  const { unattributed, days } = data;
  const { calls, lastCall } = usageColumns(data);
  const organization: Column<ReportRow> = {
    title: 'Organization',
    cell: (row) => (row.organization == null ? 'unknown organizations' : label(row.organization)),
  };
  const client: Column<ReportRow> = { title: 'Client', cell: (row) => row.client };
  const columns = [organization, calls, lastCall, client];
  const rows = unattributed.filter((row) => (row.calls ?? 0) > 0);
  const none = days.measured === 'no' ? 'Not measured.' : 'None: every call counted had a valid key.';
  return section(
    'unattributed',
    'Unattributed calls',
    table('Unattributed calls, by organization', columns, rows, { none }),
    'Calls without a valid key, or with one that was not checked, by the organization they claimed.',
  );
}

function clientColumn(query: DashboardQuery): Column<ReportRow> {
  return { title: 'Client', cell: (row) => clientCell(row, query) };
}

function clientCell(
  { client, organization, userAgents, keyIds, keys }: ReportRow,
  query: DashboardQuery,
): Html {
  const facts = [counted(keys, 'key')];
  if (userAgents.length > 0) facts.push(counted(userAgents.length, 'user agent'));
  return html`${label(client ?? '')}
    <div class="facts">
      ${
        query.organizationId === undefined &&
        organization != null &&
        html`<a href="${addressOf({ ...query, organizationId: organization })}">${label(organization)}</a>`
      }
      ${
        keys + userAgents.length > 0 &&
        html`<details>
          <summary>${facts.join(', ')}</summary>
          <ul>
            ${keyIds.map((id) => html`<li><code>${label(id)}</code></li>`)}
            ${keys > keyIds.length && html`<li>and ${counted(keys - keyIds.length, 'more key')}</li>`}
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

const groupings: UsageQuery['groupBy'][] = [
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
  const title = `Calls by ${groupBy.join(', ')}`;
  const rows = data.breakdown.rows.filter(({ calls }) => calls !== 0);
  const names = groupBy.includes('client') ? (['organization', ...groupBy] as const) : groupBy;
  const { calls, share, trend, weekOnWeek, lastCall } = usageColumns(data);
  const columns: Column<ReportRow>[] = [
    ...Array.from(new Set(names), (group) => ({
      title: group[0]?.toUpperCase() + group.slice(1),
      cell: (row: ReportRow) => label(nameIn(row, group)),
    })),
    calls,
    share,
    ...(groupBy.includes('day') ? [] : [trend, weekOnWeek]),
    ...(groupBy.includes('day') || groupBy.includes('status') ? [] : [lastCall]),
  ];
  return section(
    'breakdown',
    title,
    html`${choices(
      'Groups',
      groupings.map((groups) => ({
        address: `${addressOf(query, { groupBy: groups })}#breakdown`,
        text: groups.join(', '),
        isShown: groups.join() === groupBy.join(),
      })),
    )}
    ${table(title, columns, rows, { none: 'No calls.', query })}`,
  );
}
