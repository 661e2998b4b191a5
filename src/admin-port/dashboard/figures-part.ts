import { counted, number } from '../../lib/numbers.ts';
import { html, type Content, type Html } from '../../lib/html.ts';
import { minuteMs } from '../../deprecation/ledger/days.ts';
import type { UsageReport } from '../../deprecation/reports/report.ts';
import { splitClients } from './clients.ts';
import type { DashboardData } from './findings.ts';

import { trendText } from './trend.ts';

/** The few numbers that answer first. */
export function figuresPart(findings: DashboardData): Html {
  const { days, operations } = findings;
  const { calling, quiet } = splitClients(findings);
  const { measured } = days;
  return html`<dl class="figures">
    ${figure(
      'Calls',
      days.calls === 0 && measured === 'no' ? notMeasured : number(days.calls),
      measured === 'no' ? undefined : weekOnWeek(operations),
    )}
    ${figure(
      'Clients calling',
      calling.length === 0 && measured === 'no' ? notMeasured : number(calling.length),
      html`${counted(quiet.length, 'client')} quiet`,
    )}
    ${figure(
      'Unattributed calls',
      days.unattributed === 0 && measured === 'no' ? notMeasured : number(days.unattributed),
      'without a valid key',
    )}
    ${figure('Measured', measuredShare(findings), coverageHint(days))}
  </dl>`;
}

const notMeasured = html`<span class="unmeasured">not measured</span>`;

function figure(name: string, value: Content, hint: Content): Html {
  return html`<div>
    <dt>${name}</dt>
    <dd>${value} ${hint === undefined ? undefined : html`<small>${hint}</small>`}</dd>
  </div>`;
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

/** Rounded down, so that only a whole is called one. */
function measuredShare({ days, now }: DashboardData): Content {
  const start = Date.parse(days.from);
  const minutes = (Math.min(now, Date.parse(days.to) + 24 * 60 * minuteMs) - start) / minuteMs;
  const missing = days.gaps.reduce((sum, gap) => sum + gap.minutes, 0);
  if (days.measured === 'no') return html`<span class="unmeasured">none of it</span>`;
  const share = Math.floor(Math.max(0, 1 - missing / minutes) * 1000) / 10;
  return `${days.measured === 'yes' ? 100 : Math.min(99.9, share)}%`;
}

function coverageHint({ gaps }: UsageReport): string {
  return gaps.length === 0 ? 'no gap: every zero is real' : counted(gaps.length, 'gap');
}
