import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { formatInstant, parseInstant, parseInterval, readInstant } from '../../src/lib/iso8601.ts';

const at = (text: string) => Date.parse(text);
const instants = fc.integer({ min: at('1970-01-01T00:00:00Z'), max: at('9998-12-31T23:59:59Z') });

describe('parseInstant', () => {
  test.each([
    ['2027-01-31', '2027-01-31T00:00:00.000Z'],
    ['2027-01-31T12:00Z', '2027-01-31T12:00:00.000Z'],
    ['2027-01-31T12:00:01.25Z', '2027-01-31T12:00:01.250Z'],
    ['2027-01-31T12:00:00+02:00', '2027-01-31T10:00:00.000Z'],
    ['2027-01-31T12:00:00-0530', '2027-01-31T17:30:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ])('parses %s', (text, expected) => {
    expect(parseInstant(text)).toEqual({ kind: 'ok', value: at(expected) });
  });

  test.each([
    '',
    'tomorrow',
    '2027-02-29',
    '2027-13-01',
    '0050-02-30',
    '2027-01-31T12:00:00',
    '2027-01-31T24:00Z',
    '1',
  ])('refuses "%s" with an example of a valid time', (text) => {
    expect(parseInstant(text)).toEqual({
      kind: 'invalid',
      reason: `"${text}" is not an ISO 8601 time with a zone; write it like 2027-01-31T12:00:00Z`,
    });
  });

  test('parses what formatInstant writes, for any instant', () => {
    fc.assert(
      fc.property(instants, (ms) => {
        expect(parseInstant(formatInstant(ms))).toEqual({ kind: 'ok', value: ms });
      }),
    );
  });
});

describe('readInstant', () => {
  test.each([
    ['2027-01-31 12:00:00+00', '2027-01-31T12:00:00Z'],
    ['2027-01-31 12:00:00.123456 +0200', '2027-01-31T10:00:00.123Z'],
    ['2027-01-31 12:00:00+05:30:15', '2027-01-31T06:29:45Z'],
    ['2027-01-31T12:00:00.12345678901234Z', '2027-01-31T12:00:00.123Z'],
    ['2027-01-31t12:00:00,5z', '2027-01-31T12:00:00.500Z'],
  ])('parses %s, as databases write it', (text, expected) => {
    expect(readInstant(text)).toBe(at(expected));
  });

  test.each(['2027-01-31T12:00:00', '2027-01-31 12:00:00.123456', '2027-01-31 12:00'])(
    'reports that %s has no zone',
    (text) => {
      expect(readInstant(text)).toBe('no-zone');
    },
  );

  test.each(['0001-01-01T00:00:00Z', '1969-12-31 23:59:59.999+00', '1970-01-01T00:59:59+01:00'])(
    'reports that %s is before 1970',
    (text) => {
      expect(readInstant(text)).toBe('before-1970');
    },
  );

  test.each([
    '2027-02-30T00:00:00Z',
    '2027-01-31',
    '2027-01-31T12:00:00+24:00',
    '+010000-01-01T00:00:00Z',
    'x',
  ])('is undefined for %s', (text) => {
    expect(readInstant(text)).toBeUndefined();
  });

  test('parses the forms of JSON.stringify and of databases like any other, for any instant', () => {
    fc.assert(
      fc.property(instants, fc.nat(999_999), (ms, nanoseconds) => {
        const text = new Date(ms).toISOString();
        const sql = text.replace('T', ' ').replace('Z', String(nanoseconds).padStart(6, '0'));
        const forms = [text, text.replace('Z', '+00:00'), `${sql}+00`, `${sql}+00:00`, `${sql}Z`];
        expect(forms.map(readInstant)).toEqual(forms.map(() => ms));
      }),
    );
  });

  test.each([
    ['2026-01-02 03:04:05+00', 0],
    ['2026-01-02 03:04:05.6+00', 600],
    ['2026-01-02 03:04:05.07Z', 70],
  ])('parses %s, which has fewer digits than milliseconds', (text, ms) => {
    expect(readInstant(text)).toBe(at('2026-01-02T03:04:05Z') + ms);
  });
});

describe('the duration of a window', () => {
  const start = '2027-01-31T12:00:00Z';
  test.each([
    ['PT30M', '2027-01-31T12:30:00Z'],
    ['PT1.5S', '2027-01-31T12:00:01.500Z'],
    ['P1DT12H', '2027-02-02T00:00:00Z'],
    ['P2W', '2027-02-14T12:00:00Z'],
    ['P1M', '2027-02-28T12:00:00Z'],
    ['P1Y1M', '2028-02-29T12:00:00Z'],
    ['pt2h', '2027-01-31T14:00:00Z'],
  ])('%s is added to its start', (duration, expected) => {
    const value = { start: at(start), end: at(expected) };
    expect(parseInterval(`${start}/${duration}`)).toEqual({ kind: 'ok', value });
  });

  test.each(['P', 'PT', 'P1', '1D', 'P1DT', 'PT1H2H', '-PT1H', 'P99999Y', 'PT99999999999999H'])(
    'is refused if it is %s',
    (duration) => {
      expect(parseInterval(`${start}/${duration}`)).toMatchObject({ kind: 'invalid' });
    },
  );

  test('is exact in days, hours, minutes and seconds, for any start', () => {
    const part = fc.integer({ min: 0, max: 999 });
    fc.assert(
      fc.property(instants, part, part, part, part, (from, d, h, m, s) => {
        const end = from + (((d * 24 + h) * 60 + m) * 60 + s) * 1000;
        fc.pre(end > from && end < at('9999-12-31T00:00:00Z'));
        const window = parseInterval(`${formatInstant(from)}/P${d}DT${h}H${m}M${s}S`);
        expect(window).toEqual({ kind: 'ok', value: { start: from, end } });
      }),
    );
  });
});

describe('parseInterval', () => {
  test('parses a start with a duration or an end', () => {
    const value = { start: at('2027-01-31T12:00:00Z'), end: at('2027-01-31T12:30:00Z') };
    expect(parseInterval('2027-01-31T12:00:00Z/PT30M')).toEqual({ kind: 'ok', value });
    expect(parseInterval('2027-01-31T12:00:00Z/2027-01-31T12:30:00Z')).toEqual({ kind: 'ok', value });
  });

  test.each([
    '2027-01-31T12:00:00Z',
    '2027-01-31T12:00:00Z/PT0S',
    '2027-01-31T12:00:00Z/2027-01-31T11:00:00Z',
    '2027-01-31T12:00:00Z/soon',
    '/PT1H',
    'a/b/c',
  ])('refuses %s', (text) => {
    expect(parseInterval(text)).toMatchObject({ kind: 'invalid' });
  });
});
