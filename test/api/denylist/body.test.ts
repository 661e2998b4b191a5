import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { NotFlat, stringsIn } from '../../../src/api/denylist/flat-json.ts';

const read = (text: string | Buffer, open: '[' | '{'): string[] => [...stringsIn(Buffer.from(text), open)];

/** What the strings of a flat text are, by the parser everybody knows; undefined where it is not flat. */
function expected(text: string, open: '[' | '{'): string[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) !== (open === '['))
    return undefined;
  const strings: unknown[] = open === '[' ? (value as unknown[]) : Object.entries(value).flat();
  return strings.every((item) => typeof item === 'string') ? strings : undefined;
}

const space = fc.stringMatching(/^[ \t\n\r]{0,3}$/);
/** A name as JSON, sometimes with every character escaped that may be. */
const literal = fc
  .tuple(fc.string({ unit: 'binary' }), fc.boolean())
  .map(([text, escape]) =>
    escape
      ? `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`
      : JSON.stringify(text),
  );

describe('the strings of a flat JSON text', () => {
  test('are those that JSON.parse finds, in the order of the text, whatever the spaces and escapes', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(space, literal, space)), space, (items, around) => {
        const written = items.map((parts) => parts.join('')).join(',');
        const list = `${around}[${items.length === 0 ? around : written}]${around}`;
        expect(read(list, '[')).toEqual(JSON.parse(list));
        const pairs = items.map(
          ([before, text, after]) => `${before}${text}${after}:${after}${text}${before}`,
        );
        const object = `${around}{${items.length === 0 ? around : pairs.join(',')}}${around}`;
        expect(read(object, '{')).toEqual(
          items.flatMap(([, text]) => [JSON.parse(text) as string, JSON.parse(text) as string]),
        );
      }),
    );
  });

  test('are refused exactly where JSON.parse finds anything else, or nothing', () => {
    const mark = fc.constantFrom(
      '[',
      ']',
      '{',
      '}',
      ',',
      ':',
      '"a"',
      '"b"',
      '"\\"',
      '\\',
      '"',
      ' ',
      '1',
      'null',
      '"\\x"',
    );
    fc.assert(
      fc.property(fc.array(mark, { maxLength: 9 }), fc.constantFrom<'[' | '{'>('[', '{'), (parts, open) => {
        const text = parts.join('');
        // Of a property given twice the parser keeps one.
        const wanted = expected(text, open);
        fc.pre(
          wanted === undefined || open === '[' || new Set(wanted.filter((_, at) => at % 2 === 0)).size > 0,
        );
        let found: string[] | undefined;
        try {
          found = read(text, open);
        } catch (error) {
          expect(error).toBeInstanceOf(NotFlat);
          found = undefined;
        }
        if (open === '{' && found !== undefined && wanted !== undefined) {
          const pairs = found.flatMap((name, at) => (at % 2 === 0 ? [[name, found[at + 1]]] : []));
          expect(Object.entries(Object.fromEntries(pairs) as object).flat()).toEqual(wanted);
        } else {
          expect(found).toEqual(wanted);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test.each([1, 2, 3, 5])(
    'are read across the pieces that a long text is read in (%i bytes a character)',
    (bytes) => {
      const character = ['', 'a', 'é', '€', '', '😀'][bytes] ?? '';
      const list = Array.from({ length: 20_000 }, (_, n) => `${character.repeat(n % 7)}"\\${n}`);
      expect(read(JSON.stringify(list), '[')).toEqual(list);
    },
  );

  test('a byte order mark before them is not one of them; bytes that are not UTF-8 are refused', () => {
    expect(read('\uFEFF["a"]', '[')).toEqual(['a']);
    expect(() => read(Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]), '[')).toThrow(NotFlat);
    expect(() => read(Buffer.from([0x5b, 0x22, 0x61, 0x22, 0x5d, 0xc3]), '[')).toThrow(NotFlat);
  });

  test('one that never ends costs no more than it is long', () => {
    expect(() => read(`["${'x'.repeat(1_000_000)}`, '[')).toThrow(NotFlat);
    expect(() => read(`[${' '.repeat(1_000_000)}`, '[')).toThrow(NotFlat);
  });
});
