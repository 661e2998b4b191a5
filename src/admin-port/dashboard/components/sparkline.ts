import { html, type Html } from '../../../lib/html.ts';
import { totalOf } from '../../../lib/numbers.ts';

const width = 120;
const height = 24;
const maxPoints = 60;

/**
 * Figures per day or hour as a small line, with a hole where nothing was measured (null). It is hidden from screen
 * readers, since the figures are beside it.
 */
export function sparkline(figures: readonly (number | null)[]): Html {
  const points = averaged(figures);
  const most = Math.max(1, ...points.map((n) => n ?? 0));
  const step = points.length > 1 ? width / (points.length - 1) : 0;
  const path = points.map((n, i) => {
    if (n === null) return '';
    const at = `${round(i * step)} ${round(height - 2 - (n / most) * (height - 4))}`;
    // A single point needs a length to be visible.
    return (points[i - 1] ?? null) === null ? `M${at}h0.5` : `L${at}`;
  });
  return html`<svg
    class="spark"
    aria-hidden="true"
    viewBox="-1 0 ${width + 2} ${height}"
    width="${width}"
    height="${height}"
  >
    <path d="${path.join('')}" />
  </svg>`;
}

/** Averages neighbouring figures if there are more than the line has room for. */
function averaged(figures: readonly (number | null)[]): (number | null)[] {
  const size = Math.ceil(figures.length / maxPoints);
  return Array.from({ length: Math.ceil(figures.length / size) }, (_, i) => {
    const some = figures.slice(i * size, (i + 1) * size).filter((n) => n !== null);
    return some.length === 0 ? null : totalOf(some) / some.length;
  });
}

const round = (n: number): string => String(Math.round(n * 10) / 10);
