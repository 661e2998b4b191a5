import { html, type Content, type Html } from '../../../lib/html.ts';
import { number } from '../../../lib/numbers.ts';
import { addressOf, type DashboardQuery } from '../query.ts';

/** A section of the page with its heading. */
export function section(id: string, heading: Content, content: Content, lead?: string): Html {
  return html`<section id="${id}" aria-labelledby="${id}-heading">
    <h2 id="${id}-heading">${heading}</h2>
    ${lead === undefined ? undefined : html`<p class="lead">${lead}</p>`} ${content}
  </section>`;
}

/** A heading for screen readers only. */
export function hidden(heading: string): Html {
  return html`<span class="unseen">${heading}</span>`;
}

export interface Column<Row> {
  title: string;
  /** Aligned to the right. */
  numeric?: boolean;
  cell: (row: Row) => Content;
}

/** A table whose first column names the rows. `wide` ones become cards on narrow screens. */
export function table<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  kind = 'wide',
): Html {
  const [first, ...others] = columns.map((column) => ({ ...column, kind: column.numeric ? 'number' : '' }));
  return html`<table class="${kind}">
    <caption class="unseen">
      ${caption}
    </caption>
    <thead>
      <tr>
        ${[first, ...others].map((column) => html`<th scope="col" class="${column?.kind}">${column?.title}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            <th scope="row">${first?.cell(row)}</th>
            ${others.map(({ title, kind: align, cell }) => html`<td class="${align}" data-name="${title}">${cell(row)}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

const shownRows = 50;

/** A table of the first 50 rows, with a link to all of them. */
export function limitedTable<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  kind: string,
  query: DashboardQuery,
): Html {
  const shown = rows.slice(0, query.all ? undefined : shownRows);
  return html`${table(caption, columns, shown, kind)}
  ${
    rows.length > shown.length
      ? html`<p class="more">
          The first ${number(shown.length)} of ${number(rows.length)}.
          <a href="${addressOf(query, { all: true })}">Show all ${number(rows.length)}</a>
        </p>`
      : undefined
  }`;
}
