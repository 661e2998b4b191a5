import { counted } from '../../lib/numbers.ts';
import { html, type Html } from '../../lib/html.ts';
import { dayName } from '../../deprecation/ledger/days.ts';
import { addressOf, periods, type DashboardQuery } from './query.ts';
import { visible } from './text.ts';

/** Whose calls, and of which days: plain links and forms, so that the address says it all. */
export function filters(query: DashboardQuery, organizations: readonly string[]): Html {
  const { organizationId, days, firstDay, lastDay } = query;
  const from = dayName(firstDay);
  const to = dayName(lastDay);
  const isListed = organizationId === undefined || organizations.includes(organizationId);
  const listed = isListed ? organizations : [organizationId, ...organizations];
  const period =
    days === undefined
      ? html`<input type="hidden" name="from" value="${from}" /><input
            type="hidden"
            name="to"
            value="${to}"
          />`
      : html`<input type="hidden" name="days" value="${days}" />`;
  return html`<div class="filters">
    <form class="organizations" action="/">
      <label for="organization">Organization</label>
      <select id="organization" name="organization">
        <option value="">All organizations</option>
        ${listed
          .toSorted()
          .map(
            (id) =>
              html`<option value="${id}" ${id === organizationId ? 'selected' : undefined}>
                ${shortened(id)}
              </option>`,
          )}
      </select>
      ${period}
      <button>Show</button>
    </form>
    <nav aria-label="Period">
      <ul>
        ${periods.map(
          (n) =>
            html`<li>
              <a href="${addressOf(query, { days: n })}" ${n === days ? html`aria-current="true"` : undefined}
                >${counted(n, 'day')}</a
              >
            </li>`,
        )}
      </ul>
    </nav>
    <details id="dates" ${days === undefined ? 'open' : undefined}>
      <summary>Other dates</summary>
      <form action="/">
        ${
          organizationId === undefined
            ? undefined
            : html`<input type="hidden" name="organization" value="${organizationId}" />`
        }
        <label for="from">From</label>
        <input id="from" name="from" type="date" required value="${from}" />
        <label for="to">To</label>
        <input id="to" name="to" type="date" required value="${to}" />
        <button>Show</button>
      </form>
    </details>
  </div>`;
}

const letters = new Intl.Segmenter('en');

/** An option has no room for more. */
function shortened(id: string): string {
  const characters = Array.from(letters.segment(visible(id)), ({ segment }) => segment);
  return characters.length > 40 ? `${characters.slice(0, 39).join('')}…` : characters.join('');
}
