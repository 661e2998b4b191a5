import { counted, number } from '../../lib/numbers.ts';
import { html, type Content, type Html } from '../../lib/html.ts';
import { callsText } from './calls-part.ts';
import { splitClients, quietDays, type ClientRow } from './clients.ts';
import type { DashboardData } from './findings.ts';
import { addressOf, type DashboardQuery } from './query.ts';
import { sparkline } from './sparkline.ts';
import { ago, date, label } from './text.ts';
import { trendText } from './trend.ts';

type Column = readonly [title: string, kind: '' | 'number', cell: (row: ClientRow) => Content];

/** Rows of one table, unless all are asked for. */
const mostRows = 50;

/** Whoever still calls, by last call. */
export function callingPart(findings: DashboardData, query: DashboardQuery): Html {
  const { calling } = splitClients(findings);
  if (calling.length === 0) {
    return html`<p class="none">
      ${
        findings.clients.measured === 'no'
          ? 'Nobody was counting: whether anybody calls is not known.'
          : `No client has called in the last ${quietDays} days.`
      }
    </p>`;
  }
  const isKnown = findings.days.rows.map(({ calls }) => calls !== null);
  const columns: readonly Column[] = [
    ['Last call', '', ({ lastSeen }) => (lastSeen === null ? '–' : ago(Date.parse(lastSeen), findings.now))],
    ['Calls', 'number', ({ calls }) => callsText(calls)],
    ['Trend', '', ({ daily }) => sparkline(daily.map((n, i) => (isKnown[i] === true ? n : null)))],
    ['Week on week', 'number', ({ trend }) => (trend === null ? undefined : trendText(trend))],
    ['Operations', '', operations],
  ];
  return clientsTable('Clients that call, the latest first', columns, calling, query);
}

/** Whoever has fallen silent, the latest first, and whether anybody listened meanwhile. */
export function quietPart(findings: DashboardData, query: DashboardQuery): Html {
  const { quiet } = splitClients(findings);
  if (quiet.length === 0) return html`<p class="none">No client has gone quiet.</p>`;
  const columns: readonly Column[] = [
    [
      'Quiet since',
      '',
      ({ lastSeen }) => {
        const last = Date.parse(lastSeen ?? '');
        return html`${date(last)} <small>${ago(last, findings.now)}</small>`;
      },
    ],
    [
      'Silence measured',
      '',
      ({ quietMeasured }) =>
        quietMeasured === true ? 'throughout' : html`<span class="unmeasured">not throughout</span>`,
    ],
    ['Calls in the period', 'number', ({ calls }) => callsText(calls)],
    ['First call', '', ({ firstSeen }) => (firstSeen === null ? '–' : date(Date.parse(firstSeen)))],
  ];
  return clientsTable('Clients gone quiet, the latest first', columns, quiet, query);
}

/** Calls that came without a valid key, by the organization they claimed. */
export function unattributedPart(findings: DashboardData): Html {
  const { unattributed } = splitClients(findings);
  const rows = unattributed.filter((row) => (row.calls ?? 0) > 0);
  if (rows.length === 0) {
    return html`<p class="none">
      ${findings.clients.measured === 'no' ? 'Not measured.' : 'None: every call that was counted came with a valid key.'}
    </p>`;
  }
  return html`<ul class="unattributed">
    ${rows.map(
      (row) =>
        html`<li>
          <span>${row.organization == null ? 'unknown organizations' : label(row.organization)}</span>
          <span class="number">${number(row.calls ?? 0)}</span>
          <small
            >${row.lastSeen === null ? undefined : html`last call ${ago(Date.parse(row.lastSeen), findings.now)}`}</small
          >
        </li>`,
    )}
  </ul>`;
}

/** A table with a row for each client, up to the number shown. */
function clientsTable(
  caption: string,
  columns: readonly Column[],
  clients: readonly ClientRow[],
  query: DashboardQuery,
): Html {
  const rows = clients.slice(0, query.all ? undefined : mostRows);
  return html`<table class="wide clients">
      <caption class="unseen">
        ${caption}
      </caption>
      <thead>
        <tr>
          <th scope="col">Client</th>
          ${columns.map(([title, kind]) => html`<th scope="col" class="${kind}">${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              <th scope="row">${name(row, query)}</th>
              ${columns.map(
                ([title, kind, cell]) => html`<td class="${kind}" data-name="${title}">${cell(row)}</td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
    ${more(clients.length, rows.length, query)}`;
}

function name(row: ClientRow, query: DashboardQuery): Html {
  const { organization, userAgents, keyIds, keys } = row;
  const facts = [
    counted(keys, 'key'),
    ...(userAgents.length > 0 ? [counted(userAgents.length, 'user agent')] : []),
  ];
  return html`${label(row.client ?? '')}
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

function operations({ operations: calls }: ClientRow): Html {
  const names = Object.entries(calls).toSorted(([, a], [, b]) => b - a);
  return html`<ul class="operations">
    ${names.map(([operation, n]) => html`<li title="${counted(n, 'call')}">${label(operation)}</li>`)}
  </ul>`;
}

function more(total: number, shown: number, query: DashboardQuery): Html | undefined {
  if (total <= shown) return undefined;
  return html`<p class="more">
    The latest ${number(shown)} of ${number(total)}.
    <a href="${addressOf(query, { all: true })}">Show all ${number(total)}</a>
  </p>`;
}
