import { counted } from '../../lib/numbers.ts';
import { html, type Html } from '../../lib/html.ts';
import { dayMs, hourMs, minuteMs } from '../../deprecation/ledger/days.ts';

const percents = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });
const dates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
const times = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' });

export const percent = (ratio: number): string => percents.format(ratio);

/** An instant as a date, in UTC. */
export function date(ms: number): Html {
  return html`<time datetime="${new Date(ms).toISOString()}">${dates.format(ms)}</time>`;
}

/** An instant as date and time, in UTC. */
export function moment(ms: number): Html {
  return html`<time datetime="${new Date(ms).toISOString()}">${dates.format(ms)}, ${times.format(ms)}</time>`;
}

/** A stretch of time; the date is not said twice. */
export function span(start: number, end: number): Html {
  const sameDay = Math.floor(start / dayMs) === Math.floor((end - 1) / dayMs);
  const until = sameDay
    ? html`<time datetime="${new Date(end).toISOString()}"
        >${end % dayMs === 0 ? '24:00' : times.format(end)}</time
      >`
    : moment(end);
  return html`${moment(start)} – ${until}`;
}

/** How long ago an instant was, in the largest whole unit. */
export function ago(ms: number, now: number): Html {
  const passed = now - ms;
  const text = passed < minuteMs ? 'just now' : `${duration(passed)} ago`;
  return html`<time
    datetime="${new Date(ms).toISOString()}"
    title="${dates.format(ms)}, ${times.format(ms)} UTC"
    >${text}</time
  >`;
}

/** A length of time to the next smaller unit: 3 min, 5 h 20 min, 2 days 9 h. */
export function length(ms: number): string {
  const [large, small] = ms < dayMs ? [hourMs, minuteMs] : [dayMs, hourMs];
  const parts = [
    ...(ms >= large
      ? [large === dayMs ? counted(Math.floor(ms / dayMs), 'day') : `${Math.floor(ms / hourMs)} h`]
      : []),
    ...(ms % large >= small ? [`${Math.floor((ms % large) / small)} ${small === hourMs ? 'h' : 'min'}`] : []),
  ];
  return parts.join(' ');
}

/** A length of time in the largest whole unit: 3 min, 5 h, 12 days. */
function duration(ms: number): string {
  if (ms < hourMs) return `${Math.max(1, Math.floor(ms / minuteMs))} min`;
  if (ms < 2 * dayMs) return `${Math.floor(ms / hourMs)} h`;
  return counted(Math.floor(ms / dayMs), 'day');
}

/**
 * A text that comes from outside, for people to read: kept apart from the direction of what surrounds it, and with
 * what would hide or turn text made visible.
 */
export function label(text: string): Html {
  const shown = visible(text);
  return html`<bdi class="label" title="${shown}">${shown}</bdi>`;
}

/** The same for where no markup may be. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu,
    (character) => `‹${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}›`,
  );
}
