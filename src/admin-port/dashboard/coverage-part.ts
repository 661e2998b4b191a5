import { counted } from '../../lib/numbers.ts';
import { html, type Html } from '../../lib/html.ts';
import { minuteMs } from '../../deprecation/ledger/days.ts';
import type { DashboardData } from './findings.ts';
import { length, span } from './text.ts';

const mostGaps = 5;

/** When calls may have gone uncounted. */
export function coveragePart({ days }: DashboardData): Html {
  const gaps = days.gaps.toReversed();
  if (gaps.length === 0) {
    return html`<p>
      Measured throughout these ${counted(days.rows.length, 'day')}: whoever shows no call made none.
    </p>`;
  }
  const minutes = gaps.reduce((sum, gap) => sum + gap.minutes, 0);
  const rows = gaps.map(
    ({ from, to, minutes: missing }) =>
      html`<li>
        <span>${span(Date.parse(from), Date.parse(to))}</span>
        <span class="length">${length(missing * minuteMs)}</span>
      </li>`,
  );
  const more = rows.slice(mostGaps);
  return html`
    <p>
      ${length(minutes * minuteMs)} in ${counted(gaps.length, 'gap')}: calls made then may be missing from
      every number here.
    </p>
    <ul class="gaps">
      ${rows.slice(0, mostGaps)}
    </ul>
    ${
      more.length === 0
        ? undefined
        : html`<details id="more-gaps">
            <summary>${counted(more.length, 'earlier gap')}</summary>
            <ul class="gaps">
              ${more}
            </ul>
          </details>`
    }
  `;
}
