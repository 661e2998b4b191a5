import { createChart } from './chart.js';
import { morph } from './morph.js';

const refreshEvery = 15_000;

const content = document.getElementById('content');
const status = document.getElementById('status');
const place = document.getElementById('chart');
const block = document.getElementById('chart-data');

/** @type {ReturnType<typeof createChart> | undefined} */
let chart;

/** @param {import('../chart-data.ts').ChartData} data */
function show(data) {
  const isEmpty = data.operations.length === 0;
  if (place === null) return;
  place.hidden = isEmpty;
  if (isEmpty) return;
  if (chart === undefined) chart = createChart(place, data);
  else chart.update(data);
}

/**
 * @param {string} text
 * @param {boolean} [isTrouble]
 */
function tell(text, isTrouble = false) {
  if (status === null || status.textContent === text) return;
  status.textContent = text;
  status.classList.toggle('trouble', isTrouble);
}

async function refresh() {
  content?.setAttribute('aria-busy', 'true');
  try {
    const answer = await fetch(content?.dataset['live'] ?? '', {
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(refreshEvery),
    });
    if (answer.status === 401) {
      tell('Signed out: reload the page to sign in again.', true);
      return;
    }
    const body = await answer.json();
    if (!answer.ok) {
      tell(`${body.title}. These are the last known figures.`, true);
      return;
    }
    for (const [id, markup] of Object.entries(body.parts)) {
      const part = document.getElementById(id);
      if (part !== null) morph(part, markup);
    }
    show(body.chart);
    tell('');
  } catch {
    tell('The bridge does not answer. These are the last known figures.', true);
  } finally {
    content?.removeAttribute('aria-busy');
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let looked = Date.now();

async function look() {
  clearTimeout(timer);
  looked = Date.now();
  await refresh();
  later();
}

function later() {
  clearTimeout(timer);
  // A page nobody sees asks nobody.
  if (!document.hidden) timer = setTimeout(look, Math.max(0, looked + refreshEvery - Date.now()));
}

document.addEventListener('visibilitychange', later);
if (block?.textContent) show(JSON.parse(block.textContent));
later();
