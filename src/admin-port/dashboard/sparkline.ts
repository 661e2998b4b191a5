import { html, type Html } from '../../lib/html.ts';

const chartWidth = 120;
const chartHeight = 24;
const mostPoints = 60;

/**
 * A row's calls over the range as a small line, the first day left. Days that were not measured (null) leave a hole:
 * the line never shows them as nought. For the eye only: the numbers stand beside it.
 */
export function sparkline(daily: readonly (number | null)[]): Html {
  const points = thin(daily);
  const most = Math.max(1, ...points.map((n) => n ?? 0));
  const step = points.length > 1 ? chartWidth / (points.length - 1) : 0;
  let path = '';
  let pen = false;
  points.forEach((n, i) => {
    if (n !== null) {
      const y = chartHeight - 2 - (n / most) * (chartHeight - 4);
      const at = `${trim(i * step)} ${trim(y)}`;
      // A lone point needs a length to be seen.
      path += pen ? `L${at}` : `M${at}h0.5`;
    }
    pen = n !== null;
  });
  return html`<svg
    class="spark"
    aria-hidden="true"
    viewBox="-1 0 ${chartWidth + 2} ${chartHeight}"
    width="${chartWidth}"
    height="${chartHeight}"
  >
    <path d="${path}" />
  </svg>`;
}

/** Adds neighbouring days up where there are more than can be told apart. */
function thin(daily: readonly (number | null)[]): (number | null)[] {
  const size = Math.ceil(daily.length / mostPoints);
  if (size <= 1) return [...daily];
  return Array.from({ length: Math.ceil(daily.length / size) }, (_, i) => {
    const some = daily.slice(i * size, (i + 1) * size).filter((n) => n !== null);
    return some.length === 0 ? null : some.reduce((a, b) => a + b, 0) / some.length;
  });
}

const trim = (n: number): string => String(Math.round(n * 10) / 10);
