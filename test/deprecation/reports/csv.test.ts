import { describe, expect, test } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import * as fc from 'fast-check';
import { csvLine } from '../../../src/deprecation/reports/csv.ts';

const plain = (cell: string) => cell.replaceAll("'", '');

describe('CSV', () => {
  test.each([
    ['=HYPERLINK("http://x")', `"'=HYPERLINK(""http://x"")"\r\n`],
    ['+1', "'+1\r\n"],
    ['-1', "'-1\r\n"],
    ['@SUM(A1)', "'@SUM(A1)\r\n"],
    ['\t=1', "'\t'=1\r\n"],
    [' =1', "' =1\r\n"],
    ['a,b', '"a,b"\r\n'],
    ['a;=1', "a;'=1\r\n"],
    ['a; "=1', `"a;' ""=1"\r\n`],
    ['a;b', 'a;b\r\n'],
    ['ios-4.2', 'ios-4.2\r\n'],
    [-1, '-1\r\n'],
    [null, '\r\n'],
  ])('writes %j as %j', (value, expected) => {
    expect(csvLine([value])).toBe(expected);
  });

  test('survives a round trip through a CSV parser, without a cell that starts a formula', () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom('=', '+', '-', '@', '"', ',', ';', '\r', '\n', '\t', ' ', 'x') }),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { minLength: 1 }), (rows) => {
        const back = parse(rows.map(csvLine).join(''), { record_delimiter: '\r\n', skip_empty_lines: false });
        expect(back.map((row) => row.map(plain))).toEqual(rows.map((row) => row.map(plain)));
        expect(back.flat().filter((cell) => /^\s*[=+\-@]/.test(cell))).toEqual([]);
        for (const separator of [';', '\t']) {
          const cells = rows
            .map(csvLine)
            .join('')
            .split(new RegExp(`[${separator}\\r\\n]`));
          expect(cells.filter((cell) => /^[\s"]*[=+\-@]/.test(cell))).toEqual([]);
        }
      }),
    );
  });
});
