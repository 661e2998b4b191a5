import { html, type Html } from '../../../lib/html.ts';

export interface Milestone {
  kind: 'deprecated' | 'brownout' | 'today' | 'sunset';
  /** ms */
  start: number;
  end: number;
  name: string;
  when: Html;
}

/** The narrowest mark that can be seen, in per cent of the line. */
const minWidth = 0.3;

/** The policy's dates in order: as a line to scale, and as a list. */
export function timeline(milestones: readonly Milestone[], now: number): Html {
  const first = Math.min(...milestones.map(({ start }) => start));
  const last = Math.max(...milestones.map(({ end }) => end));
  // With a margin, so that the outermost marks are not cut off.
  const at = (ms: number) => 1.5 + (97 * (ms - first)) / Math.max(1, last - first);
  const x = (ms: number) => `${at(ms).toFixed(2)}%`;
  const marks = milestones.map(({ kind, start, end }) => {
    if (kind !== 'brownout') {
      return html`<circle class="${kind}" cx="${x(start)}" cy="14" r="${kind === 'today' ? 6 : 5}" />`;
    }
    const width = `${Math.max(minWidth, at(end) - at(start)).toFixed(2)}%`;
    return html`<rect class="brownout" x="${x(start)}" y="6" width="${width}" height="16" rx="1.5" />`;
  });
  return html`<div class="timeline">
    <svg aria-hidden="true" width="100%" height="28">
      <line class="ahead" x1="${x(first)}" x2="${x(last)}" y1="14" y2="14" />
      <line class="passed" x1="${x(first)}" x2="${x(now)}" y1="14" y2="14" />
      ${marks}
    </svg>
    <ol>
      ${milestones.map(
        ({ kind, name, when }) =>
          html`<li class="${kind}"><span class="name">${name}</span> <span class="when">${when}</span></li>`,
      )}
    </ol>
  </div>`;
}
