const daysOfMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const zoneForm = /^ ?(?:[Zz]|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?(?::?([0-5]\d))?)$/;

/**
 * Reads an ISO 8601 date and time with a zone, as people, JSON, PostgreSQL and MySQL write it: milliseconds since
 * the epoch, anything finer cut off. Undefined for what is none, or lies before 1970.
 */
export function readInstant(value: string): number | 'no-zone' | undefined {
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
  if (!rightMarks || !(month >= 1 && month <= 12 && day >= 1 && hour <= 23 && minute <= 59)) return undefined;
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  if (day > (month === 2 && !leap ? 28 : (daysOfMonths[month - 1] ?? 0))) return undefined;

  let second = 0;
  let fraction = 0;
  let end = 16;
  if (value[16] === ':') {
    second = digits(value, 17, 2);
    if (!(second <= 59)) return undefined;
    end = 19;
    if (value[19] === '.' || value[19] === ',') {
      end = 20;
      while (isDigit(value.charCodeAt(end))) end += 1;
      if (end === 20) return undefined;
      fraction = Number(value.slice(20, Math.min(end, 23)).padEnd(3, '0'));
    }
  }
  if (end === value.length) return 'no-zone';
  const offset = end === value.length - 1 && value[end] === 'Z' ? 0 : zoneOffset(value.slice(end));
  const time = Date.UTC(year, month - 1, day, hour, minute, second, fraction) - offset;
  return year >= 1970 && time >= 0 ? time : undefined;
}

function zoneOffset(zone: string): number {
  const found = zoneForm.exec(zone);
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
