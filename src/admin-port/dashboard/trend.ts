import { number } from '../../lib/numbers.ts';
import { html, type Html } from '../../lib/html.ts';
import type { UsageReport } from '../../deprecation/reports/report.ts';

type Trend = NonNullable<UsageReport['rows'][number]['trend']>;

const rounded = new Intl.NumberFormat('en', { style: 'percent', signDisplay: 'exceptZero' });

/** The last seven days against the seven before, in a word. */
export function trendText({ last7Days, previous7Days, change, measured }: Trend): Html {
  if (!measured && last7Days + previous7Days === 0) return html`<span class="unmeasured">not measured</span>`;
  const direction = last7Days === previous7Days ? 'same' : last7Days > previous7Days ? 'up' : 'down';
  const text =
    change === null
      ? last7Days === 0
        ? 'none'
        : 'new'
      : change > 9.99
        ? 'over +999%'
        : rounded.format(change).replace('-', '−');
  const hint = `${number(last7Days)} in the last 7 days, ${number(previous7Days)} in the 7 before${measured ? '' : '; not measured throughout'}`;
  return html`<span class="trend ${direction}" title="${hint}">${measured ? '' : '≈ '}${text}</span>`;
}
