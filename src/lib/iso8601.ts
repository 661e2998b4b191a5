// Not the native Temporal, even if there is one: that of Node.js 26 reads PT1H2H as two hours.
import { Temporal } from 'temporal-polyfill/implementation';

/** A period of time in ms: `start <= t < end`. */
export interface Interval {
  start: number;
  end: number;
}

export type Parsed<T> = { kind: 'ok'; value: T } | { kind: 'invalid'; reason: string };

const invalid = (reason: string): Parsed<never> => ({ kind: 'invalid', reason });

const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

// Times in UTC as JSON.stringify and as databases write them, on days that every month has. Date.parse is ten times
// faster than Temporal.
const day = String.raw`(?:19[7-9]|[2-9]\d\d)\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])`;
const time = String.raw`(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d`;
const jsonForm = new RegExp(String.raw`^${day}T${time}(?:\.\d{3})?Z$`);
const databaseForm = new RegExp(String.raw`^(${day}) (${time})(?:\.(\d{1,9}))?(?:Z|\+00)$`);

/**
 * Parses an ISO 8601 date and time with a zone, as people, JSON, PostgreSQL and MySQL write it, as ms, rounded down.
 * `no-zone` if only the zone is missing; `before-1970`; undefined for anything else, and for times after 9999.
 */
export function readInstant(text: string): number | 'no-zone' | 'before-1970' | undefined {
  if (jsonForm.test(text)) return Date.parse(text);
  const [, date, clock, fraction = ''] = databaseForm.exec(text) ?? [];
  if (date !== undefined) return Date.parse(`${date}T${clock}.${fraction.padEnd(3, '0').slice(0, 3)}Z`);
  const value = epochMilliseconds(text);
  if (value !== undefined) return value >= 0 ? value : 'before-1970';
  return epochMilliseconds(`${text}Z`) === undefined ? undefined : 'no-zone';
}

function epochMilliseconds(text: string): number | undefined {
  // Databases put a space before the zone, and some write more digits than Temporal reads.
  const form = text.replace(/ (?=[Zz+-])/, '').replace(/([.,]\d{9})\d+/, '$1');
  try {
    const value = Temporal.Instant.from(form).epochMilliseconds;
    return value <= latest ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Parses an ISO 8601 date (`2027-01-31`, midnight UTC) or date-time with a zone (`2027-01-31T12:00:00Z`) as
 * milliseconds since the epoch. A date-time without a zone and a date that does not exist are invalid.
 */
export function parseInstant(text: string): Parsed<number> {
  const given = text.trim();
  const value = readInstant(/^\d{4}-\d{2}-\d{2}$/.test(given) ? `${given}T00:00Z` : given);
  return typeof value === 'number'
    ? { kind: 'ok', value }
    : invalid(`"${text}" is not an ISO 8601 time with a zone; write it like 2027-01-31T12:00:00Z`);
}

/**
 * Adds an ISO 8601 duration (`PT30M`, `P1DT12H`, `P2W`, `P1M`) to an instant (ms). Years and months are those of the
 * calendar in UTC; a day that the resulting month lacks becomes its last day.
 */
function addDuration(start: number, text: string): Parsed<number> {
  try {
    const duration = Temporal.Duration.from(text.trim());
    const from = Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO('UTC');
    const value = from.add(duration).epochMilliseconds;
    if (duration.sign >= 0 && value <= latest) return { kind: 'ok', value };
  } catch {
    // Not a duration, or one beyond the range of dates.
  }
  return invalid(
    `"${text}" is neither an ISO 8601 duration, like PT30M, PT2H or P1D, nor a time, like 2027-01-31T12:30:00Z, before the year 10000`,
  );
}

/** Parses an ISO 8601 interval: `START/DURATION` or `START/END`. */
export function parseInterval(text: string): Parsed<Interval> {
  const [startText, endText, ...rest] = text.split('/');
  if (startText === undefined || endText === undefined || rest.length > 0) {
    return invalid(
      `"${text}" is not an interval; write START/DURATION like 2027-01-31T12:00:00Z/PT30M, or START/END`,
    );
  }
  const start = parseInstant(startText);
  if (start.kind === 'invalid') return start;
  const named = parseInstant(endText);
  const end = named.kind === 'ok' ? named : addDuration(start.value, endText);
  if (end.kind === 'invalid') return end;
  if (end.value <= start.value) return invalid(`interval "${text}" does not end after it begins`);
  return { kind: 'ok', value: { start: start.value, end: end.value } };
}

/** An instant (ms) as ISO 8601 in UTC, without milliseconds if they are zero. */
export function formatInstant(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** An interval as `START/END`. */
export function formatInterval({ start, end }: Interval): string {
  return `${formatInstant(start)}/${formatInstant(end)}`;
}
