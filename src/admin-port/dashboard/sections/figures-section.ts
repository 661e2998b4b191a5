import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';
import { minutesOf, shownEnd, type UsageReport } from '../../../deprecation/reports/report.ts';
import { dayMs, durationText, minuteMs } from '../../../lib/days.ts';
import { html, type Content, type Html } from '../../../lib/html.ts';
import { counted, formatNumber } from '../../../lib/numbers.ts';
import { callsText, span, trendText } from '../components/text.ts';
import type { DashboardData } from '../dashboard-data.ts';
import { figure, foldedList, hidden, section } from '../components/layout.ts';

/** The figures people look for first. */
export function figuresSection({ days, trend, calling, quiet, now }: DashboardData): Html {
  const count = (n: number) => (n === 0 && days.measured === 'no' ? callsText(null) : formatNumber(n));
  return section(
    'figures',
    hidden('At a glance'),
    html`<dl>
      ${figure('Calls', count(days.calls), days.measured !== 'no' && weekOnWeek(trend))}
      ${figure('Clients calling', count(calling.length), `${counted(quiet.length, 'client')} quiet`)}
      ${figure('Unattributed calls', count(days.unattributed), 'key not valid, or not checked')}
      ${figure(
        'Measured',
        measuredShare(days, now),
        days.gaps.length === 0 ? 'no gap: every 0 is real' : counted(days.gaps.length, 'gap'),
      )}
    </dl>`,
  );
}

function weekOnWeek(trend: ReportRow['trend']): Html {
  const isNone = trend === null || (trend.measured && trend.last7Days + trend.previous7Days === 0);
  return isNone ? html`none in the last 14 days` : html`${trendText(trend)} week on week`;
}

/** Rounded down, so that 100% means all of it. */
function measuredShare({ measured, from, to, gaps }: UsageReport, now: number): Content {
  if (measured === 'no') return html`<span class="unmeasured">none of it</span>`;
  if (measured === 'yes') return '100%';
  const minutes = (Math.min(now, Date.parse(to) + dayMs) - Date.parse(from)) / minuteMs;
  const share = Math.floor(Math.max(0, 1 - minutesOf(gaps) / minutes) * 1000) / 10;
  return `${Math.min(99.9, share)}%`;
}

const shownGaps = 5;

/** When calls may have gone uncounted, the latest first. */
export function coverageSection({ days: { gaps }, uncheckedInPeriod }: DashboardData): Html {
  const lines = gaps.toReversed().map(
    (gap) =>
      html`<li>
        <span>${span(Date.parse(gap.from), shownEnd(gap))}</span>
        <span class="length">${durationText(gap.minutes)}</span>
      </li>`,
  );
  const content =
    gaps.length === 0
      ? html`<p>
          The whole period was measured: a client shown without calls made
          none${uncheckedInPeriod && ' (calls whose key was not checked may be theirs)'}.
        </p>`
      : html`<p>
            ${durationText(minutesOf(gaps))} in ${counted(gaps.length, 'gap')}. Calls made in that time may be
            missing from every figure on this page.
          </p>
          ${foldedList(lines, { shown: shownGaps, id: 'more-gaps', noun: 'earlier gap', className: 'gaps' })}`;
  return section('coverage', 'What was not measured', content);
}
