import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { normalizedName, nameFault, patternFault, ruleFault } from '../../src/domain/usernames.ts';

const anyName = fc.string({ unit: 'grapheme', maxLength: 20 });

describe('normalized names', () => {
  test.each(['exact', 'case-insensitive'] as const)(
    'normalizing a name twice gives the same as once (%s)',
    (comparison) => {
      fc.assert(
        fc.property(anyName, (name) => {
          const form = normalizedName(name, comparison);
          expect(normalizedName(form, comparison)).toBe(form);
        }),
      );
    },
  );

  test('exact distinguishes case, and folds only normalization', () => {
    expect(normalizedName('Am\u0065\u0301lie', 'exact')).toBe('Am\u00E9lie');
    expect(normalizedName('Ada', 'exact')).not.toBe(normalizedName('ada', 'exact'));
    expect(normalizedName('ﬁ', 'exact')).toBe('ﬁ');
  });

  test.each([
    ['ＡＤＡ', 'ada'], // fullwidth letters
    ['Å', 'å'], // ANGSTROM SIGN
    ['ΣΑΣ', 'σας'], // a final sigma, as Unicode toLowerCase has it
    ['ｶﾞ', 'ガ'], // halfwidth katakana with its voiced mark
    ['ﾡￂￜ', '\u3131\u314F\u3163'], // halfwidth Hangul
    ['\u3000a', ' a'], // ideographic space
    ['￣', '¯'],
    ['ﬁ', 'ﬁ'], // a ligature is no width
    ['İ', 'i̇'],
  ])('case-insensitive: %s folds to %s (RFC 8265 §3.3)', (name, form) => {
    expect(normalizedName(name, 'case-insensitive')).toBe(form);
  });

  test('the width mapping is what the Unicode data says, for every wide and narrow character', () => {
    // NFKD undoes the compatibility mappings of the targets as well, on both sides.
    for (let code = 0xff01; code <= 0xffee; code++) {
      const character = String.fromCharCode(code);
      const mapped = normalizedName(character, 'case-insensitive');
      expect(mapped.normalize('NFKD')).toBe(character.toLowerCase().normalize('NFKD').toLowerCase());
    }
  });
});

describe('the hard limits of every name', () => {
  test.each(['', 'a\u0000', 'a\nb', '\u007F', '\u0085', '\uD800', 'a\uDC00', '😀'.repeat(257)])(
    '%j is not a name',
    (name) => {
      expect(nameFault(name)).toMatch(/^must/);
    },
  );

  test.each(['a', '__proto__', '123', ' ', '😀'.repeat(256), '\u202Eabc', "'; DROP TABLE"])(
    '%j is a name',
    (name) => {
      expect(nameFault(name)).toBeUndefined();
    },
  );
});

describe("an organization's rules", () => {
  test('count code points, not UTF-16 units', () => {
    expect(ruleFault('😀😀😀', { minLength: 3, maxLength: 3 })).toBeUndefined();
    expect(ruleFault('😀😀', { minLength: 3, maxLength: 3 })).toMatch(/at least 3/);
  });

  test('match the whole name', () => {
    const rules = { minLength: 1, maxLength: 64, pattern: '[a-z]+|[0-9]+' };
    expect(ruleFault('abc', rules)).toBeUndefined();
    expect(ruleFault('123', rules)).toBeUndefined();
    expect(ruleFault('abc1', rules)).toMatch(/must match/);
  });

  test('a pattern that would take a backtracking engine forever is matched at once', () => {
    const rules = { minLength: 1, maxLength: 256, pattern: '(a+)+b' };
    expect(ruleFault('a'.repeat(200), rules)).toMatch(/must match/);
  });

  test('a pattern that RE2 does not support is refused', () => {
    expect(patternFault('(?=a)')).toBeDefined();
    expect(patternFault('[a-z]{1,5}')).toBeUndefined();
  });
});
