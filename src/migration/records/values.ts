import { readInstant } from '../../lib/iso8601.ts';
import { walletForm } from '../../domain/profile.ts';
import { nameFault } from '../../domain/usernames.ts';

/**
 * A value that breaks its rule. The reason completes a sentence that begins with the field's name and never
 * repeats the value: reports may be read by people who must not see an API key.
 */
export class InvalidValue {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

/** A rule turns a present value (never null, undefined or "") into the record's form, or refuses it. */
export type Rule<Value = unknown> = (value: unknown) => Value | InvalidValue;

// Most names and ids are printable ASCII; for those one look is enough.
const plainText = /^[ -~]{1,256}$/;

const badText = new InvalidValue('must be text');
const badInstant = new InvalidValue('must be an ISO 8601 date and time with a zone, or epoch milliseconds');
const earlyInstant = new InvalidValue('must not be before 1970: where it means none, leave it out');

/**
 * An id or a name: well-formed Unicode, no control characters, 1 to 256 code points; kept as given. A whole number
 * becomes a string, unless JSON has lost its last digits: converters from CSV to JSON may turn a name into a number.
 */
export const id: Rule<string> = (value) => {
  if (typeof value === 'number')
    return Number.isSafeInteger(value)
      ? String(value)
      : new InvalidValue('is a number that cannot be read exactly; give it as a string');
  if (typeof value !== 'string') return badText;
  const fault = plainText.test(value) ? undefined : nameFault(value);
  return fault === undefined ? value : new InvalidValue(fault);
};

/** Text of any length, kept as given; only what UTF-8 cannot represent is refused. */
export const text: Rule<string> = (value) => {
  if (typeof value !== 'string') return badText;
  return value.isWellFormed() ? value : new InvalidValue('is not well-formed Unicode');
};

/** true or false, also in the spellings of CSV files and databases. */
export const flag: Rule<boolean> = (value) => {
  if (typeof value === 'boolean') return value;
  if (value === 1 || value === '1') return true;
  if (value === 0 || value === '0') return false;
  const word = typeof value === 'string' ? value.toLowerCase() : '';
  if (word === 'true' || word === 't') return true;
  if (word === 'false' || word === 'f') return false;
  return new InvalidValue('must be true or false');
};

/** A small whole number. */
export const count: Rule<number> = (value) => {
  const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number)
    ? number
    : new InvalidValue('must be a whole number');
};

/** Accepts only an EVM address, in the given spelling (its capitals may be a checksum). */
export const wallet: Rule<string> = (value) =>
  typeof value === 'string' && walletForm.test(value)
    ? value
    : new InvalidValue('must be 0x and 40 hexadecimal digits');

/** A SHA-256, to lower-case hexadecimal. */
export const sha256: Rule<string> = (value) =>
  typeof value === 'string' && /^[0-9a-fA-F]{64}$/.test(value)
    ? value.toLowerCase()
    : new InvalidValue('must be 64 hexadecimal digits');

/** One of a few words. */
export const oneOf = <Word extends string>(...words: readonly Word[]): Rule<Word> => {
  const refusal = new InvalidValue(`must be ${words.join(' or ')}`);
  return (value) => words.find((word) => word === value) ?? refusal;
};

/** From here on a number cannot mean seconds: it would be in the year 5138. As milliseconds it is in 1973. */
export const secondsEnd = 100_000_000_000;

const latest = 8.64e15;

/**
 * An instant: epoch milliseconds, or ISO 8601 with a zone, as JSON, PostgreSQL or MySQL write it. Becomes epoch
 * milliseconds, rounded down; none is before 1970.
 */
export const instant: Rule<number> = (value) => {
  if (typeof value === 'number') return milliseconds(value);
  if (typeof value !== 'string') return badInstant;
  if (/^-?\d+(?:\.\d+)?$/.test(value)) return milliseconds(Number(value));
  const read = readInstant(value);
  if (read === 'before-1970') return earlyInstant;
  return read === 'no-zone'
    ? new InvalidValue('has no time zone; add one to the date and time, such as Z or +02:00')
    : (read ?? badInstant);
};

function milliseconds(value: number): number | InvalidValue {
  if (value < 0) return earlyInstant;
  return value >= 0 && value <= latest ? Math.floor(value) : badInstant;
}
