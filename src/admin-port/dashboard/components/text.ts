import { dayMs, relativeTime } from '../../../lib/days.ts';
import { html, type Html } from '../../../lib/html.ts';
import { formatNumber } from '../../../lib/numbers.ts';
import type { ReportRow } from '../../../deprecation/reports/group-usage.ts';

const percents = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });
const changes = new Intl.NumberFormat('en', { style: 'percent', signDisplay: 'exceptZero' });
const dates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
const times = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' });

export const percent = (ratio: number): string =>
  ratio > 0 && ratio < 0.001 ? '<0.1%' : percents.format(ratio);

/** A position or length as a share of an SVG's width, so that a chart fits any width without a script. */
export const svgLength = (share: number): string => `${Math.round(share * 100_000) / 1000}%`;

const momentText = (ms: number): string => `${dates.format(ms)}, ${times.format(ms)}`;

/** An instant (ms) as a date, in UTC. */
export function date(ms: number): Html {
  return time(ms, dates.format(ms));
}

/** An instant as date and time, in UTC. */
export function moment(ms: number): Html {
  return time(ms, momentText(ms));
}

/** A period of time; the date is not repeated if it ends on the same day. */
export function span(start: number, end: number): Html {
  const sameDay = Math.floor(start / dayMs) === Math.floor((end - 1) / dayMs);
  const until = sameDay ? time(end, end % dayMs === 0 ? '24:00' : times.format(end)) : moment(end);
  return html`${moment(start)} – ${until}`;
}

/** How long ago an ISO 8601 instant was, by whatever clock; a dash for null. */
export function ago(instant: string | null, now: number): Html {
  if (instant === null) return html`–`;
  const ms = Date.parse(instant);
  return html`<time datetime="${instant}" title="${momentText(ms)} UTC"
    >${relativeTime(Math.min(0, ms - now))}</time
  >`;
}

function time(ms: number, text: string): Html {
  return html`<time datetime="${new Date(ms).toISOString()}">${text}</time>`;
}

/** A count of calls, or "not measured" for null. */
export function callsText(calls: number | null): Html {
  return calls === null ? html`<span class="unmeasured">not measured</span>` : html`${formatNumber(calls)}`;
}

/** The last seven days compared with the seven before. */
export function trendText(trend: ReportRow['trend']): Html {
  if (trend === null) return html``;
  const { last7Days, previous7Days, change, measured } = trend;
  if (!measured && last7Days + previous7Days === 0) return callsText(null);
  const direction = last7Days === previous7Days ? 'same' : last7Days > previous7Days ? 'up' : 'down';
  const text =
    change === null
      ? last7Days === 0
        ? 'none'
        : 'new'
      : change > 9.99
        ? 'over +999%'
        : changes.format(change).replace('-', '−');
  const hint = `${formatNumber(last7Days)} in the last 7 days, ${formatNumber(previous7Days)} in the 7 before${measured ? '' : '; not measured throughout'}`;
  return html`<span class="trend ${direction}" title="${hint}">${text}${measured ? '' : '?'}</span>`;
}

/**
 * A text from outside: isolated from the direction of the text around it, and with characters that would hide or
 * reorder text made visible.
 */
export function label(text: string): Html {
  const shown = visible(text);
  return html`<bdi class="label" title="${shown}">${shown}</bdi>`;
}

/** The same as plain text. Joiners and variation selectors stay: words and emoji need them. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?!\p{Join_Control}|\p{Variation_Selector})\p{Default_Ignorable_Code_Point}/gu,
    (character) => `‹${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}›`,
  );
}
