import { dayMs } from '../../../lib/days.ts';
import { html, type Html } from '../../../lib/html.ts';
import { counted, formatNumber } from '../../../lib/numbers.ts';
import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';
import type { DashboardData } from '../dashboard-data.ts';
import { svgLength, visible } from './text.ts';

const plotHeight = 240;
const labelHeight = 24;

const compact = new Intl.NumberFormat('en', { notation: 'compact' });
const shortDates = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const fullDates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone: 'UTC' });

/**
 * Calls per day as stacked bars, one for each operation. Time that was not measured is hatched, and days without any
 * measurement have no bar.
 */
export function callsChart({ days, operations, now }: DashboardData): Html {
  const start = Date.parse(days.from);
  const count = days.rows.length;
  const x = (ms: number) => svgLength((ms - start) / (count * dayMs));
  const { top, ticks } = scaleFor(Math.max(...days.rows.map(({ calls }) => calls ?? 0)));
  const y = (calls: number) => Math.round(10 * plotHeight * (1 - calls / top)) / 10;
  const barWidth = count <= 10 ? 0.5 : 0.76;

  const grid = ticks.map(
    (tick) =>
      html`<line x2="100%" y1="${y(tick)}" y2="${y(tick)}" /><text x="-10" y="${y(tick) + 4}"
          >${compact.format(tick)}</text
        >`,
  );
  const gaps = days.gaps.map(({ from, to }) => {
    const [left, right] = [Math.max(Date.parse(from), start), Date.parse(to)];
    // Short gaps must be visible too.
    const width = svgLength(Math.max((right - left) / (count * dayMs), 0.002));
    return html`<rect class="gap" x="${x(left)}" width="${width}" height="${plotHeight}" />`;
  });
  const bars = days.rows.map((row, i) => {
    const dayStart = start + i * dayMs;
    let below = 0;
    const parts = operations.flatMap(({ name, colour }) => {
      const calls = row.operations[name] ?? 0;
      if (calls === 0) return [];
      below += calls;
      const height = Math.max(0.5, y(below - calls) - y(below)).toFixed(1);
      return html`<rect
        class="colour-${colour}"
        x="${x(dayStart + ((1 - barWidth) / 2) * dayMs)}"
        y="${y(below)}"
        width="${svgLength(barWidth / count)}"
        height="${height}"
      />`;
    });
    return html`<g class="day">
      <title>${dayText(row, operations, dayStart, now)}</title>
      <rect class="slot" x="${x(dayStart)}" width="${svgLength(1 / count)}" height="${plotHeight}" />${parts}
    </g>`;
  });
  return html`<div class="chart">
    <svg
      role="img"
      aria-label="Calls per day by operation. The table below has the same figures."
      width="100%"
      height="${plotHeight + labelHeight}"
    >
      <pattern id="hatching" patternUnits="userSpaceOnUse" width="7" height="7">
        <path d="M-1 1l2-2M0 7l7-7M6 8l2-2" />
      </pattern>
      ${gaps} ${grid} ${bars} ${dateLabels(count, start)}
    </svg>
    ${gaps.length > 0 && html`<p class="hint">Hatched: not measured.</p>`}
  </div>`;
}

/** Round numbers for the vertical axis, from 0 to the first that is not exceeded. */
function scaleFor(most: number): { top: number; ticks: number[] } {
  const rough = Math.max(1, most / 4);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const steps = Math.max(1, Math.ceil(most / step));
  return { top: steps * step, ticks: Array.from({ length: steps + 1 }, (_, i) => i * step) };
}

/** Dates below the plot, counted back from the last day; every other one is hidden on narrow screens. */
function dateLabels(count: number, start: number): Html[] {
  const step = [1, 2, 7, 14, 28].find((days) => count / days <= 10) ?? 56;
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => {
    const day = count - 1 - i * step;
    const middle = svgLength((day + 0.5) / count);
    return html`<text class="date ${i % 2 === 1 ? 'minor' : ''}" x="${middle}" y="${plotHeight + 18}"
      >${shortDates.format(start + day * dayMs)}</text
    >`;
  });
}

function dayText(
  row: ReportRow,
  operations: DashboardData['operations'],
  dayStart: number,
  now: number,
): string {
  const day = fullDates.format(dayStart);
  if (row.calls === null) return `${day}: not measured`;
  const parts = operations.flatMap(({ name }) => {
    const calls = row.operations[name] ?? 0;
    return calls > 0 ? [`${visible(name)} ${formatNumber(calls)}`] : [];
  });
  return [
    `${day}: ${counted(row.calls, 'call')}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`,
    ...(row.measured === 'yes' ? [] : ['not measured throughout']),
    ...(now < dayStart + dayMs ? ['so far'] : []),
  ].join(', ');
}
