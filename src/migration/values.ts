import { WALLET } from '../domain/wallets.ts';
import { nameFault } from '../domain/usernames.ts';

/**
 * A value that breaks its rule. The reason completes a sentence that begins with the field's name and never
 * repeats the value: reports may be read by people who must not see an API key.
 */
export class Refusal {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

/** A rule turns a present value (never null, undefined or "") into the record's form, or refuses it. */
export type Rule = (value: unknown) => unknown;

// Most names and ids are printable ASCII; for those one look is enough.
const PLAIN = /^[ -~]{1,256}$/;

const BAD_TEXT = new Refusal('must be text');
const BAD_UNICODE = new Refusal('is not well-formed Unicode');
const INEXACT_NUMBER = new Refusal('is a number that cannot be read exactly; give it as a string');
const BAD_FLAG = new Refusal('must be true or false');
const BAD_COUNT = new Refusal('must be a whole number');
const BAD_WALLET = new Refusal('must be 0x and 40 hexadecimal digits');
const BAD_HASH = new Refusal('must be 64 hexadecimal digits');
const BAD_INSTANT = new Refusal('must be an ISO 8601 date and time with a zone, or epoch milliseconds');
const NO_ZONE = new Refusal('has no time zone; add one to the date and time, such as Z or +02:00');

/**
 * An id or a name: well-formed Unicode, no control characters, 1 to 256 code points; kept as given. A whole number
 * becomes a string, unless JSON has lost its last digits: whatever turns CSV into JSON may take a name for a number.
 */
export const id: Rule = (value) => {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : INEXACT_NUMBER;
  return typeof value === 'string' ? plainName(value) : BAD_TEXT;
};

/** Whether the value is text within the hard limits at one look; the rules judge what it denies. */
export function isPlain(value: unknown): value is string {
  return typeof value === 'string' && PLAIN.test(value);
}

function plainName(value: string): string | Refusal {
  if (PLAIN.test(value)) return value;
  const fault = nameFault(value);
  return fault === undefined ? value : new Refusal(fault);
}

/** Text carried as it is, of any length; only what UTF-8 cannot hold is refused. */
export const text: Rule = (value) => {
  if (typeof value !== 'string') return BAD_TEXT;
  return value.isWellFormed() ? value : BAD_UNICODE;
};

/** true or false, also in the spellings of CSV files and databases. */
export const flag: Rule = (value) => {
  if (typeof value === 'boolean') return value;
  if (value === 1 || value === '1') return true;
  if (value === 0 || value === '0') return false;
  const word = typeof value === 'string' ? value.toLowerCase() : '';
  if (word === 'true' || word === 't') return true;
  if (word === 'false' || word === 'f') return false;
  return BAD_FLAG;
};

/** A small whole number. */
export const count: Rule = (value) => {
  const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : BAD_COUNT;
};

/** Refuses all but an EVM address, in the spelling given (its capitals may be a checksum). */
export const wallet: Rule = (value) => (typeof value === 'string' && WALLET.test(value) ? value : BAD_WALLET);

/** A SHA-256, to lower-case hexadecimal. */
export const sha256: Rule = (value) =>
  typeof value === 'string' && /^[0-9a-fA-F]{64}$/.test(value) ? value.toLowerCase() : BAD_HASH;

/** One of a few words. */
export const oneOf = (...words: readonly string[]): Rule => {
  const refusal = new Refusal(`must be ${words.join(' or ')}`);
  return (value) => (typeof value === 'string' && words.includes(value) ? value : refusal);
};

/** The first instant that cannot be meant in seconds: as seconds it would lie in the year 5138. */
export const SECONDS_END = 100_000_000_000;

const LATEST = 8.64e15;
const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * A moment: epoch milliseconds, or ISO 8601 with a zone, as JSON, PostgreSQL or MySQL write it. Gives epoch
 * milliseconds; anything finer is cut off.
 */
export const instant: Rule = (value) => {
  if (typeof value === 'number') return milliseconds(value);
  if (typeof value !== 'string') return BAD_INSTANT;
  if (/^\d+(?:\.\d+)?$/.test(value)) return milliseconds(Number(value));
  return isoInstant(value);
};

function milliseconds(value: number): number | Refusal {
  return value >= 0 && value <= LATEST ? Math.floor(value) : BAD_INSTANT;
}

const ZONE = /^ ?(?:[Zz]|([+-])(\d\d)(?::?([0-5]\d))?(?::?([0-5]\d))?)$/;

function isoInstant(value: string): number | Refusal {
  const separator = value.charCodeAt(10);
  const year = digits(value, 0, 4);
  const month = digits(value, 5, 2);
  const day = digits(value, 8, 2);
  const hour = digits(value, 11, 2);
  const minute = digits(value, 14, 2);
  const rightMarks =
    value[4] === '-' &&
    value[7] === '-' &&
    value[13] === ':' &&
    (separator === 84 || separator === 116 || separator === 32);
  if (!rightMarks || !(month >= 1 && month <= 12 && day >= 1 && hour <= 23 && minute <= 59))
    return BAD_INSTANT;
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  if (day > (month === 2 && !leap ? 28 : (DAYS[month - 1] ?? 0))) return BAD_INSTANT;

  let second = 0;
  let fraction = 0;
  let end = 16;
  if (value[16] === ':') {
    second = digits(value, 17, 2);
    if (!(second <= 59)) return BAD_INSTANT;
    end = 19;
    if (value[19] === '.' || value[19] === ',') {
      end = 20;
      while (isDigit(value.charCodeAt(end))) end += 1;
      if (end === 20) return BAD_INSTANT;
      fraction = Number(value.slice(20, Math.min(end, 23)).padEnd(3, '0'));
    }
  }
  if (end === value.length) return NO_ZONE;
  const offset = end === value.length - 1 && value[end] === 'Z' ? 0 : zoneOffset(value.slice(end));
  const time = Date.UTC(year, month - 1, day, hour, minute, second, fraction) - offset;
  return year >= 1970 && time >= 0 ? time : BAD_INSTANT;
}

function zoneOffset(zone: string): number {
  const found = ZONE.exec(zone);
  if (!found) return Number.NaN;
  const size =
    Number(found[2] ?? 0) * 3_600_000 + Number(found[3] ?? 0) * 60_000 + Number(found[4] ?? 0) * 1000;
  return found[1] === '-' ? -size : size;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function digits(value: string, from: number, length: number): number {
  let number = 0;
  for (let index = from; index < from + length; index += 1) {
    const code = value.charCodeAt(index);
    if (!isDigit(code)) return Number.NaN;
    number = number * 10 + code - 48;
  }
  return number;
}
