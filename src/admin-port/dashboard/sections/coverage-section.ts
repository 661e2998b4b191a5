import { minutesOf } from '../../../deprecation/reports/report.ts';
import { durationText, minuteMs } from '../../../lib/days.ts';
import { html, type Html } from '../../../lib/html.ts';
import { counted } from '../../../lib/numbers.ts';
import { section } from '../components/layout.ts';
import { span } from '../components/text.ts';
import type { DashboardData } from '../dashboard-data.ts';

const shownGaps = 5;

/** When calls may have gone uncounted, the latest first. */
export function coverageSection({ days }: DashboardData): Html {
  return section('coverage', 'What was not measured', days.gaps.length === 0 ? complete(days) : gapsOf(days));
}

function complete({ rows }: DashboardData['days']): Html {
  return html`<p>
    All of these ${counted(rows.length, 'day')} were measured: a client without calls made none.
  </p>`;
}

function gapsOf({ gaps }: DashboardData['days']): Html {
  const rows = gaps.toReversed().map(
    (gap) =>
      html`<li>
        <span>${span(Date.parse(gap.from), Date.parse(gap.to))}</span>
        <span class="length">${durationText(gap.minutes * minuteMs)}</span>
      </li>`,
  );
  const list = (some: readonly Html[]) =>
    html`<ul class="gaps">
      ${some}
    </ul>`;
  const more = rows.slice(shownGaps);
  return html`<p>
      ${durationText(minutesOf(gaps) * minuteMs)} in ${counted(gaps.length, 'gap')}. Calls made in that time
      may be missing from every figure on this page.
    </p>
    ${list(rows.slice(0, shownGaps))}
    ${
      more.length === 0
        ? undefined
        : html`<details id="more-gaps">
            <summary>${counted(more.length, 'earlier gap')}</summary>
            ${list(more)}
          </details>`
    }`;
}
