import { dayName } from '../../lib/days.ts';
import { html, type Html } from '../../lib/html.ts';
import { counted } from '../../lib/numbers.ts';
import { visible } from './components/text.ts';
import { addressOf, periods, type DashboardQuery } from './query.ts';

/** The choice of an organization and a period, as links and forms: the address has the whole state. */
export function filters(query: DashboardQuery, organizations: readonly string[]): Html {
  const { organizationId, days, firstDay, lastDay } = query;
  const [from, to] = [dayName(firstDay), dayName(lastDay)];
  const field = (name: string, value: string | number | undefined) =>
    value === undefined ? undefined : html`<input type="hidden" name="${name}" value="${value}" />`;
  const isListed = organizationId === undefined || organizations.includes(organizationId);
  const listed = isListed ? organizations : [organizationId, ...organizations];
  return html`<div class="filters">
    <form action="/">
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
      ${days === undefined ? [field('from', from), field('to', to)] : field('days', days)}
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
        ${field('organization', organizationId)}
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

/** An id, shortened to fit an option. */
function shortened(id: string): string {
  const characters = Array.from(letters.segment(visible(id)), ({ segment }) => segment);
  return characters.length > 40 ? `${characters.slice(0, 39).join('')}…` : characters.join('');
}
