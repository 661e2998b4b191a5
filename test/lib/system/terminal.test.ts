import { execFileSync } from 'node:child_process';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { counted } from '../../../src/lib/numbers.ts';
import { list, printable, shellWord, table } from '../../../src/lib/system/terminal.ts';

describe('text for a terminal', () => {
  test('a table has aligned columns, numbers on the right, and a dash for no value', () => {
    expect(
      table(
        ['', 'read', 'by'],
        [
          ['profiles', '12,345', 'äö'],
          ['denylist', '7', undefined],
        ],
        ['read'],
      ).split('\n'),
    ).toEqual([
      '            read  by', //
      'profiles  12,345  äö',
      'denylist       7  -',
    ]);
  });

  test('control and format characters are escaped, in tables and lists too', () => {
    expect(printable('a\u001b[2J\u202eb\u2028')).toBe(String.raw`a\u{1b}[2J\u{202e}b\u{2028}`);
    expect(list([['name', '\u0007']])).toBe(String.raw`name  \u{7}`);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(table(['heading'], [[text]])).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
      }),
    );
  });

  test('a word for a shell is printable, and the shell reads the text from it', () => {
    const word = fc.string({ unit: 'grapheme' }).filter((text) => !/\p{Cc}/u.test(text));
    const some = fc.array(fc.oneof(word, fc.constantFrom('-n\u202e', "it's %s\\\u2066", '$(x)`\u2028"')));
    fc.assert(
      fc.property(some, (texts) => {
        const words = texts.map(shellWord).join(' ');
        expect(words).toBe(printable(words));
        const read = execFileSync('sh', ['-c', `for word in ${words}; do printf '%s\\0' "$word"; done`]);
        expect(read.toString().split('\0').slice(0, -1)).toEqual(texts);
      }),
      { numRuns: 50 },
    );
  });

  test('a count has its noun in the singular or plural', () => {
    expect([0, 1, 1234].map((count) => counted(count, 'record'))).toEqual([
      '0 records',
      '1 record',
      '1,234 records',
    ]);
  });
});
