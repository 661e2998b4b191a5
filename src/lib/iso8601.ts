import { readInstant } from './instants.ts';

/** A stretch of time in ms: `start <= t < end`. */
export interface Window {
  start: number;
  end: number;
}

export type Parsed<T> = { kind: 'ok'; value: T } | { kind: 'invalid'; reason: string };

const invalid = (reason: string): { kind: 'invalid'; reason: string } => ({ kind: 'invalid', reason });

const dateForm = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Reads an ISO 8601 date (`2027-01-31`, midnight UTC) or date-time with a zone (`2027-01-31T12:00:00Z`) as
 * milliseconds since the epoch. A date-time without a zone, or a day no calendar has, is invalid.
 */
export function parseInstant(text: string): Parsed<number> {
  const given = text.trim();
  const value = readInstant(dateForm.test(given) ? `${given}T00:00Z` : given);
  return typeof value === 'number'
    ? { kind: 'ok', value }
    : invalid(`"${text}" is no ISO 8601 time with a zone; write it like 2027-01-31T12:00:00Z`);
}

const durationForm =
  /^P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?$/;

/**
 * The instant (ms) that lies an ISO 8601 duration (`PT30M`, `P1DT12H`, `P2W`, `P1M`) after `start` (ms).
 * Years and months are calendar ones in UTC; a day the month lacks becomes the month's last.
 */
export function addDuration(start: number, duration: string): Parsed<number> {
  const match = durationForm.exec(duration.trim().toUpperCase());
  if (match === null) {
    return invalid(`"${duration}" is no ISO 8601 duration; write it like PT30M, PT2H or P1D`);
  }
  const [years, months, weeks, days, hours, minutes, seconds] = match
    .slice(1)
    .map((part: string | undefined) => Number((part ?? '0').replace(',', '.')));
  const moved = addMonths(start, (years ?? 0) * 12 + (months ?? 0));
  const total =
    ((weeks ?? 0) * 7 + (days ?? 0)) * 86_400_000 +
    (hours ?? 0) * 3_600_000 +
    (minutes ?? 0) * 60_000 +
    Math.round((seconds ?? 0) * 1000);
  const value = moved + total;
  if (!(value <= latest)) return invalid(`"${duration}" reaches beyond the year 9999`);
  return { kind: 'ok', value };
}

const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

function addMonths(start: number, months: number): number {
  if (months === 0) return start;
  const from = new Date(start);
  const to = new Date(start);
  to.setUTCDate(1);
  to.setUTCMonth(from.getUTCMonth() + months);
  const daysInMonth = new Date(Date.UTC(to.getUTCFullYear(), to.getUTCMonth() + 1, 0)).getUTCDate();
  to.setUTCDate(Math.min(from.getUTCDate(), daysInMonth));
  return to.getTime();
}

/** Reads a window as ISO 8601 writes an interval: `START/DURATION` or `START/END`. It holds `start <= t < end`. */
export function parseWindow(text: string): Parsed<Window> {
  const [startText, endText, ...rest] = text.split('/');
  if (startText === undefined || endText === undefined || rest.length > 0) {
    return invalid(
      `"${text}" is no window; write START/DURATION like 2027-01-31T12:00:00Z/PT30M, or START/END`,
    );
  }
  const start = parseInstant(startText);
  if (start.kind === 'invalid') return start;
  const end = /^p/i.test(endText.trim()) ? addDuration(start.value, endText) : parseInstant(endText);
  if (end.kind === 'invalid') return end;
  if (end.value <= start.value) return invalid(`window "${text}" ends before it begins`);
  return { kind: 'ok', value: { start: start.value, end: end.value } };
}

/** An instant (ms) as people and `parseInstant` read it: ISO 8601 in UTC, without idle milliseconds. */
export function formatInstant(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** A window as `parseWindow` reads it: START/END. */
export function formatWindow({ start, end }: Window): string {
  return `${formatInstant(start)}/${formatInstant(end)}`;
}
