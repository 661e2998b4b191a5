import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';
import { html, type Content, type Html } from '../../../lib/html.ts';
import { counted, formatNumber } from '../../../lib/numbers.ts';
import type { DashboardData } from '../dashboard-data.ts';
import { addressOf, type DashboardQuery } from '../query.ts';
import { sparkline } from './sparkline.ts';
import { ago, callsText, percent, trendText } from './text.ts';

/** A section of the page with its heading. */
export function section(id: string, heading: Content, content: Content, lead?: string): Html {
  return html`<section id="${id}" aria-labelledby="${id}-heading">
    <h2 id="${id}-heading">${heading}</h2>
    ${lead && html`<p class="lead">${lead}</p>`} ${content}
  </section>`;
}

/** A heading for screen readers only. */
export function hidden(heading: string): Html {
  return html`<span class="unseen">${heading}</span>`;
}

/** A figure with its name, in a `<dl>`. */
export function figure(name: string, value: Content, hint: Content): Html {
  return html`<div>
    <dt>${name}</dt>
    <dd>${value} <small>${hint}</small></dd>
  </div>`;
}

/** Links to other views of the page, one of which is shown. */
export function choices(
  title: string,
  links: readonly { address: string; text: string; isShown: boolean }[],
): Html {
  return html`<nav aria-label="${title}">
    <ul>
      ${links.map(
        ({ address, text, isShown }) =>
          html`<li><a href="${address}" ${isShown && html`aria-current="true"`}>${text}</a></li>`,
      )}
    </ul>
  </nav>`;
}

/** A square in a colour of the style sheet, for a legend. */
export function swatch(colour: string): Html {
  return html`<svg class="swatch" aria-hidden="true" width="10" height="10">
    <rect class="${colour}" width="10" height="10" rx="2" />
  </svg>`;
}

/** The first lines (`<li>`) as a list, and the others folded up. */
export function foldedList(
  lines: readonly Html[],
  { shown, id, noun, className }: { shown: number; id: string; noun: string; className?: string },
): Html {
  const list = (some: readonly Html[]) =>
    html`<ol class="${className}">
      ${some}
    </ol>`;
  const more = lines.slice(shown);
  return html`${list(lines.slice(0, shown))}
  ${
    more.length > 0 &&
    html`<details id="${id}">
      <summary>${counted(more.length, noun)}</summary>
      ${list(more)}
    </details>`
  }`;
}

export interface Column<Row> {
  title: string;
  /** Aligned to the right. */
  numeric?: boolean;
  cell: (row: Row) => Content;
}

interface TableOptions<Row> {
  /** With the class `wide`, rows become cards on narrow screens. */
  className?: string;
  /** The sentence in place of a table without rows. */
  none?: string;
  query?: DashboardQuery;
  /** Identifies a row, even if rows change places while the page is open. */
  keyOf?: (row: Row) => string;
}

const shownRows = 50;
/** More would keep this process, which also serves the API, from its other requests for too long. */
const mostRows = 1000;

/**
 * A table whose first column names the rows, or a sentence if there are none. With a query, only the first 50 rows are
 * shown unless it asks for all, and a link leads to the others; rows beyond the thousandth are only in the CSV.
 */
export function table<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { className = 'wide', none, query, keyOf }: TableOptions<Row> = {},
): Html {
  if (rows.length === 0 && none !== undefined) return html`<p class="none">${none}</p>`;
  const shown = rows.slice(0, query?.all === false ? shownRows : mostRows);
  const [first, ...others] = columns.map((column) => ({ ...column, align: column.numeric && 'number' }));
  return html`<table class="${className}">
      <caption class="unseen">
        ${caption}
      </caption>
      <thead>
        <tr>
          ${[first, ...others].map((column) => html`<th scope="col" class="${column?.align}">${column?.title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${shown.map(
          (row) =>
            html`<tr ${keyOf && html`data-key="${keyOf(row)}"`}>
              <th scope="row">${first?.cell(row)}</th>
              ${others.map(({ title, align, cell }) => html`<td class="${align}" data-name="${title}">${cell(row)}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
    ${rows.length > shown.length && html`<p class="more">${restNote(shown.length, rows.length, query)}</p>`}`;
}

function restNote(shown: number, all: number, query: DashboardQuery | undefined): Html {
  const count = html`The first ${formatNumber(shown)} of ${formatNumber(all)}.`;
  if (query?.all !== false) return html`${count} The CSV at the end of this page has all of them.`;
  const text = all > mostRows ? `Show ${formatNumber(mostRows)}` : `Show all ${formatNumber(all)}`;
  return html`${count} <a href="${addressOf(query, { all: true })}">${text}</a>`;
}

/** The columns that several tables share. */
export function usageColumns({ days, now }: DashboardData) {
  return {
    calls: { title: 'Calls', numeric: true, cell: ({ calls }) => callsText(calls) },
    share: { title: 'Share', numeric: true, cell: ({ share }) => percent(share) },
    trend: {
      title: 'Trend',
      // Days that were not measured leave holes.
      cell: ({ daily }) => sparkline(daily.map((calls, i) => (days.rows[i]?.calls == null ? null : calls))),
    },
    weekOnWeek: { title: 'Week on week', numeric: true, cell: ({ trend }) => trendText(trend) },
    lastCall: { title: 'Last call', cell: ({ lastSeen }) => ago(lastSeen, now) },
  } satisfies Record<string, Column<ReportRow>>;
}
