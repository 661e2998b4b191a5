import { morph } from './morph.js';

const refreshMs = 15_000;
/** A page about very many organizations takes longer than a refresh. */
const timeoutMs = 60_000;

/** @param {string} id */
function element(id, page = document) {
  const found = page.getElementById(id);
  if (found === null) throw new Error(`The page has no #${id}`);
  return found;
}

/** @param {string} text */
function report(text) {
  const status = element('status');
  if (status.textContent !== text) status.textContent = text;
}

async function refresh() {
  try {
    const response = await fetch(location.href, { signal: AbortSignal.timeout(timeoutMs) });
    if (response.status === 401) {
      report('Signed out: reload the page to sign in again.');
      return;
    }
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    if (!response.ok) {
      // A proxy's page has no such heading.
      const title = page.querySelector('[role=alert] h2')?.textContent ?? `The status is ${response.status}`;
      report(`${title}. These are the last known figures.`);
      return;
    }
    const focused = document.activeElement;
    for (const id of ['updated', 'content']) morph(element(id), element(id, page));
    // A row that was moved has lost its focus.
    if (focused instanceof HTMLElement && focused !== document.activeElement) {
      focused.focus({ preventScroll: true });
    }
    report('');
  } catch {
    report('The bridge does not answer. These are the last known figures.');
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let refreshedAt = Date.now();

function schedule() {
  clearTimeout(timer);
  // A hidden page is not refreshed.
  if (document.hidden) return;
  timer = setTimeout(
    async () => {
      refreshedAt = Date.now();
      await refresh();
      schedule();
    },
    Math.max(0, refreshedAt + refreshMs - Date.now()),
  );
}

document.addEventListener('visibilitychange', schedule);
schedule();
