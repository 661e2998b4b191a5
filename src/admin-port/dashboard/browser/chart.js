import uPlot from '../vendor/uPlot.esm.js';

/** @typedef {import('../chart-data.ts').ChartData} ChartData */

const daySeconds = 86_400;
const counts = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact' });
const axisDates = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const fullDates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone: 'UTC' });

/**
 * Draws calls per day as stacked bars, and hatched what was not measured. The days can be read one by one with the
 * pointer or the arrow keys.
 * @param {HTMLElement} place
 * @param {ChartData} first
 */
export function createChart(place, first) {
  let data = first;
  /** @type {uPlot | undefined} */
  let plot;

  const readout = document.createElement('p');
  readout.className = 'readout';
  readout.setAttribute('aria-live', 'polite');
  const canvas = document.createElement('div');
  canvas.className = 'canvas';
  canvas.tabIndex = 0;
  canvas.setAttribute('role', 'group');
  canvas.setAttribute(
    'aria-label',
    'Calls per day by operation, as a chart. The arrow keys read it day by day.',
  );
  place.replaceChildren(readout, canvas);
  place.hidden = false;

  const draw = () => {
    plot?.destroy();
    plot = new uPlot(optionsFor(data, canvas, describe), stacked(data), canvas);
  };

  /** @param {number | null | undefined} index */
  function describe(index) {
    if (index == null) {
      readout.textContent = summary(data);
      return;
    }
    readout.replaceChildren(...dayText(data, index));
  }

  canvas.addEventListener('keydown', (event) => {
    const last = data.days.length - 1;
    const current = plot?.cursor.idx ?? null;
    /** @type {Record<string, number>} */
    const targets = {
      ArrowLeft: current === null ? last : Math.max(0, current - 1),
      ArrowRight: current === null ? 0 : Math.min(last, current + 1),
      Home: 0,
      End: last,
    };
    const index = targets[event.key];
    const day = index === undefined ? undefined : data.days[index];
    if (plot === undefined || day === undefined) return;
    event.preventDefault();
    plot.setCursor({ left: plot.valToPos(day, 'x'), top: 10 });
  });
  canvas.addEventListener('blur', () => plot?.setCursor({ left: -10, top: -10 }));

  new ResizeObserver(() => plot?.setSize(sizeOf(canvas))).observe(canvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  draw();
  describe(undefined);

  return {
    /** @param {ChartData} next */
    update: (next) => {
      const sameShape = JSON.stringify(shapeOf(next)) === JSON.stringify(shapeOf(data));
      data = next;
      if (sameShape) plot?.setData(stacked(data));
      else draw();
      describe(plot?.cursor.idx);
    },
  };
}

/** @param {ChartData} data */
function shapeOf({ start, end, operations }) {
  return [start, end, operations.map(({ name }) => name)];
}

/** @param {HTMLElement} canvas */
function sizeOf(canvas) {
  return { width: canvas.clientWidth, height: canvas.clientWidth < 500 ? 220 : 280 };
}

/**
 * The topmost layer first: each is drawn down to the ground, and the next one over it.
 * @param {ChartData} data
 * @returns {uPlot.AlignedData}
 */
function stacked({ days, operations }) {
  /** @type {(number | null)[]} */
  let below = days.map(() => 0);
  const layers = operations.map(({ calls }) => {
    below = below.map((sum, i) => (calls[i] == null || sum === null ? null : sum + calls[i]));
    return below;
  });
  return [days, ...layers.toReversed()];
}

/**
 * @param {ChartData} data
 * @param {HTMLElement} canvas
 * @param {(index: number | null | undefined) => void} describe
 * @returns {uPlot.Options}
 */
function optionsFor(data, canvas, describe) {
  const style = getComputedStyle(canvas);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const bars = uPlot.paths.bars?.({ size: [0.78, 48] });
  const font = `12px ${style.fontFamily}`;
  return {
    ...sizeOf(canvas),
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    legend: { show: false },
    padding: [8, 20, 0, 0],
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { range: () => [data.start, data.end] },
      y: { range: (_plot, _low, high) => [0, Math.max(1, (high ?? 0) * 1.05)] },
    },
    axes: [
      {
        stroke: colour('soft'),
        font,
        grid: { show: false },
        ticks: { show: false },
        space: 70,
        incrs: [1, 2, 7, 14, 28, 56, 112].map((days) => days * daySeconds),
        splits: (_plot, _axis, low, high, step) => {
          const ticks = [];
          for (let at = high - daySeconds / 2; at >= low; at -= step) ticks.unshift(at);
          return ticks;
        },
        values: (_plot, ticks) => ticks.map((at) => axisDates.format(at * 1000)),
      },
      {
        stroke: colour('soft'),
        font,
        size: 48,
        grid: { stroke: colour('line'), width: 1 },
        ticks: { show: false },
        incrs: [1, 2, 5]
          .flatMap((n) => Array.from({ length: 12 }, (_, power) => n * 10 ** power))
          .sort((a, b) => a - b),
        values: (_plot, ticks) => ticks.map((n) => short.format(n)),
      },
    ],
    series: [
      {},
      ...data.operations.toReversed().map((operation) => ({
        label: operation.name,
        fill: colour(`colour-${operation.colour}`),
        width: 0,
        points: { show: false },
        ...(bars && { paths: bars }),
      })),
    ],
    hooks: {
      drawClear: [(plot) => drawGaps(plot, data, colour('gap'))],
      setCursor: [(plot) => describe(plot.cursor.idx)],
    },
  };
}

/**
 * @param {uPlot} plot
 * @param {ChartData} data
 * @param {string} colour
 */
function drawGaps(plot, { gaps }, colour) {
  const { ctx, bbox } = plot;
  const pixel = devicePixelRatio;
  ctx.save();
  const hatched = hatching(ctx, colour, pixel);
  ctx.strokeStyle = colour;
  ctx.lineWidth = pixel;
  for (const [from, to] of gaps) {
    const left = Math.max(bbox.left, plot.valToPos(from, 'x', true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, 'x', true));
    // However short, it is seen.
    const width = Math.max(right - left, 2 * pixel);
    ctx.fillStyle = width < 8 * pixel ? colour : hatched;
    ctx.fillRect(left, bbox.top, width, bbox.height);
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left + width, bbox.top);
    ctx.stroke();
  }
  ctx.restore();
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {string} colour
 * @param {number} pixel
 */
function hatching(ctx, colour, pixel) {
  const size = Math.round(7 * pixel);
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const pen = tile.getContext('2d');
  if (pen === null) return colour;
  pen.strokeStyle = colour;
  pen.lineWidth = pixel;
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
  }
  pen.stroke();
  return ctx.createPattern(tile, 'repeat') ?? colour;
}

/** @param {ChartData} data */
function summary({ days, gaps }) {
  const hatched = gaps.length > 0 ? ' Hatched: not measured.' : '';
  return `${days.length} days.${hatched}`;
}

/**
 * @param {ChartData} data
 * @param {number} index
 */
function dayText({ days, operations, gaps, now }, index) {
  const middle = days[index] ?? 0;
  const start = middle - daySeconds / 2;
  const end = middle + daySeconds / 2;
  const strong = document.createElement('strong');
  strong.textContent = fullDates.format(middle * 1000);
  const known = operations.filter(({ calls }) => calls[index] != null);
  const total = known.reduce((sum, { calls }) => sum + (calls[index] ?? 0), 0);
  const hasGap = gaps.some(([from, to]) => from < end && start < to);
  const parts = known
    .filter(({ calls }) => (calls[index] ?? 0) > 0)
    .map(({ name, calls }) => `${name} ${counts.format(calls[index] ?? 0)}`);
  const text =
    known.length === 0 && hasGap
      ? 'not measured'
      : `${counts.format(total)} ${total === 1 ? 'call' : 'calls'}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}` +
        `${hasGap ? ', not measured throughout' : ''}${now < end ? ', so far' : ''}`;
  return [strong, `: ${text}`];
}
