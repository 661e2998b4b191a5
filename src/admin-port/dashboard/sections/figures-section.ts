import { dayMs, minuteMs } from '../../../lib/days.ts';
import { html, type Content, type Html } from '../../../lib/html.ts';
import { counted, number } from '../../../lib/numbers.ts';
import { minutesOf, type UsageReport } from '../../../deprecation/reports/report.ts';
import type { DashboardData } from '../dashboard-data.ts';
import { hidden, section } from '../components/layout.ts';
import { callsText, trendText } from '../components/text.ts';

/** The figures people look for first. */
export function figuresSection(data: DashboardData): Html {
  const { days, operations, calling, quiet } = data;
  const figure = (name: string, value: Content, hint: Content) =>
    html`<div>
      <dt>${name}</dt>
      <dd>${value} <small>${hint}</small></dd>
    </div>`;
  const count = (n: number) => (n === 0 && days.measured === 'no' ? callsText(null) : number(n));
  return section(
    'figures',
    hidden('At a glance'),
    html`<dl>
      ${figure('Calls', count(days.calls), days.measured === 'no' ? '' : weekOnWeek(operations))}
      ${figure('Clients calling', count(calling.length), `${counted(quiet.length, 'client')} quiet`)}
      ${figure('Unattributed calls', count(days.unattributed), 'without a valid key')}
      ${figure(
        'Measured',
        measuredShare(data),
        days.gaps.length === 0 ? 'no gap: every 0 is real' : counted(days.gaps.length, 'gap'),
      )}
    </dl>`,
  );
}

function weekOnWeek({ rows }: UsageReport): Html {
  const sum = (of: 'last7Days' | 'previous7Days') =>
    rows.reduce((total, { trend }) => total + (trend?.[of] ?? 0), 0);
  const last7Days = sum('last7Days');
  const previous7Days = sum('previous7Days');
  const change = previous7Days === 0 ? null : last7Days / previous7Days - 1;
  const measured = rows.every(({ trend }) => trend?.measured !== false);
  if (measured && last7Days + previous7Days === 0) return html`none in the last 14 days`;
  return html`${trendText({ last7Days, previous7Days, change, measured })} week on week`;
}

/** Rounded down, so that 100% means all of it. */
function measuredShare({ days, now }: DashboardData): Content {
  if (days.measured === 'no') return html`<span class="unmeasured">none of it</span>`;
  if (days.measured === 'yes') return '100%';
  const minutes = (Math.min(now, Date.parse(days.to) + dayMs) - Date.parse(days.from)) / minuteMs;
  const share = Math.floor(Math.max(0, 1 - minutesOf(days.gaps) / minutes) * 1000) / 10;
  return `${Math.min(99.9, share)}%`;
}
