import { counted } from './numbers.ts';

export const minuteMs = 60_000;
export const hourMs = 3_600_000;
export const dayMs = 86_400_000;

/** The UTC day of an instant (ms), as the number of days since the epoch. */
export function dayOf(ms: number): number {
  return Math.floor(ms / dayMs);
}

/** A day number as YYYY-MM-DD. */
export function dayName(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10);
}

/** Minutes in words: hours and minutes below two days, days and hours from there. */
export function durationText(minutes: number): string {
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  return Object.entries(days >= 2 ? { day: days, hour: hours % 24 } : { hour: hours, minute: minutes % 60 })
    .flatMap(([unit, count]) => (count > 0 ? counted(count, unit) : []))
    .join(' ');
}

const relative = new Intl.RelativeTimeFormat('en');

/** A time relative to now (ms; negative: in the past), in whole units: `in 3 days`, `2 hours ago`. */
export function relativeTime(ms: number): string {
  if (Math.abs(ms) < minuteMs) return ms > 0 ? 'in a moment' : 'just now';
  if (Math.abs(ms) < 2 * hourMs) return relative.format(Math.ceil(ms / minuteMs), 'minute');
  if (Math.abs(ms) < 2 * dayMs) return relative.format(Math.ceil(ms / hourMs), 'hour');
  return relative.format(Math.ceil(ms / dayMs), 'day');
}
