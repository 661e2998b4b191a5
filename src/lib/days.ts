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

/** A duration (ms) in words: hours and minutes below two days, days and hours from there. */
export function durationText(ms: number): string {
  const minutes = Math.ceil(ms / minuteMs);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  const parts =
    days >= 2
      ? [days > 0 && counted(days, 'day'), hours % 24 > 0 && counted(hours % 24, 'hour')]
      : [hours > 0 && counted(hours, 'hour'), minutes % 60 > 0 && counted(minutes % 60, 'minute')];
  return parts.filter(Boolean).join(' ');
}

const relative = new Intl.RelativeTimeFormat('en');

/** A time relative to now (ms; negative: in the past), in whole units: `in 3 days`, `2 hours ago`. */
export function relativeTime(ms: number): string {
  if (Math.abs(ms) < minuteMs) return 'just now';
  if (Math.abs(ms) < 2 * hourMs) return relative.format(Math.ceil(ms / minuteMs), 'minute');
  if (Math.abs(ms) < 2 * dayMs) return relative.format(Math.ceil(ms / hourMs), 'hour');
  return relative.format(Math.ceil(ms / dayMs), 'day');
}
