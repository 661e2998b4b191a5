import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseReplacements, parseUsernames } from '../../../src/api/denylist/list-body.ts';
import { ProblemError, type ProblemBody } from '../../../src/contract/problems.ts';
import { nameFault } from '../../../src/domain/usernames.ts';

/** The list or map that a text holds, or the problem it is refused with. */
async function outcomeOf<Value>(
  reading: Promise<Value>,
): Promise<Value | Pick<ProblemBody, 'code' | 'errors'>> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { code, errors } = error.toBody('r1');
    return { code, ...(errors && { errors }) };
  }
}
const readList = async (text: string | Buffer) => await outcomeOf(parseUsernames(Buffer.from(text)));
const readBans = async (text: string | Buffer) => await outcomeOf(parseReplacements(Buffer.from(text)));

const isValid = (name: unknown): boolean => typeof name === 'string' && nameFault(name) === undefined;

const space = fc.stringMatching(/^[ \t\n\r]{0,3}$/);
/** A name as JSON, sometimes with every character escaped. */
const literal = fc
  .tuple(
    fc.oneof(
      fc.string({ unit: 'binary', minLength: 1 }),
      fc.string({ unit: fc.constantFrom('a', '\uFEFF'), minLength: 1 }),
      fc.constantFrom('a', '1', '__proto__'),
    ),
    fc.boolean(),
  )
  .filter(([text]) => isValid(text))
  .map(([text, escape]) =>
    escape
      ? `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`
      : JSON.stringify(text),
  );

describe('a list of names', () => {
  test('is what JSON.parse reads, whatever the spaces and escapes', async () => {
    const items = fc.array(fc.tuple(space, literal, space).map((parts) => parts.join('')));
    await fc.assert(
      fc.asyncProperty(items, space, async (names, around) => {
        const text = `${around}[${names.length === 0 ? around : names.join(',')}]${around}`;
        expect(await readList(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test.each([1, 2, 3, 4])('is read across slices (%i bytes a character)', async (bytes) => {
    const character = ['', 'a', 'é', '€', '😀'][bytes] ?? '';
    const list = Array.from({ length: 20_000 }, (_, n) => `${character.repeat(n % 7)}"\\${n}`);
    expect(await readList(JSON.stringify(list))).toEqual(list);
  });

  test('may begin with a byte order mark; bytes that are not UTF-8 are refused', async () => {
    expect(await readList('\uFEFF["a"]')).toEqual(['a']);
    for (const bytes of [
      [0x5b, 0x22, 0xff, 0x22, 0x5d],
      [0x5b, 0x22, 0x61, 0x22, 0x5d, 0xc3],
    ]) {
      expect(await readList(Buffer.from(bytes))).toEqual({ code: 'invalid-json' });
    }
  });

  test.each(['\uFEFF', '\uFEFFbob', '\uFEFF\uFEFFbob', `bob\uFEFF`])(
    'keeps the byte order marks that are part of a name (%j)',
    async (name) => {
      const escaped = name.replaceAll('\uFEFF', '\\ufeff');
      expect(await readList(`["a","${name}","${escaped}"]`)).toEqual(['a', name, name]);
      expect(await readBans(`{"${escaped}":"${name}"}`)).toEqual(new Map([[name, name]]));
    },
  );

  test('with a lone surrogate is refused, and the surrogate is not replaced by another character', async () => {
    expect(await readList('["a","\\ud800"]')).toEqual({
      code: 'invalid-body',
      errors: [{ path: '/1', message: 'must be well-formed Unicode' }],
    });
  });

  test('is not read beyond its twentieth error', async () => {
    const text = `[${'"",'.repeat(25)} this is not JSON`;
    const errors = Array.from({ length: 20 }, (_, n) => ({ path: `/${n}`, message: 'must not be empty' }));
    expect(await readList(text)).toEqual({ code: 'invalid-body', errors });
  });
});

describe('an object of replacements', () => {
  test('has each property once, at its first position with its last value, as in JSON.parse', async () => {
    const properties = fc.array(fc.tuple(literal, literal));
    await fc.assert(
      fc.asyncProperty(properties, async (pairs) => {
        const text = `{${pairs.map(([name, value]) => `${name}:${value}`).join(',')}}`;
        const expected = new Map(
          pairs.map(([name, value]) => [JSON.parse(name) as string, JSON.parse(value) as string]),
        );
        const found = await readBans(text);
        expect(found).toEqual(expected);
        expect([...(found as Map<string, string>).keys()]).toEqual([...expected.keys()]);
      }),
    );
  });

  test('is validated by the last value of each property only', async () => {
    const text = '{"rude":{"":"\\u0000","a":["b",{"rude":1}]},"c":"d","rude":"player-1"}';
    expect(await readBans(text)).toEqual(new Map([['rude', 'player-1'], ['c', 'd']])); // prettier-ignore
    expect(await readBans('{"rude":"player-1","rude":7}')).toEqual({
      code: 'invalid-body',
      errors: [{ path: '/rude', message: 'must be a string' }],
    });
  });

  test('may have any property name, __proto__ included', async () => {
    expect(await readBans('{"__proto__":"a","constructor":"b","123":"c"}')).toEqual(
      new Map([['__proto__', 'a'], ['constructor', 'b'], ['123', 'c']]), // prettier-ignore
    );
  });
});

test('any text is accepted, or refused as not JSON or not a list, exactly where JSON.parse says so', async () => {
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
    '-',
    'null',
    '"\\x"',
    '"\t"',
  );
  const expected = (text: string, type: 'array' | 'object'): unknown => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return 'invalid-json';
    }
    const isWanted =
      typeof value === 'object' && value !== null && Array.isArray(value) === (type === 'array');
    if (!isWanted || !Object.values(value as object).every(isValid)) return 'invalid-body';
    return type === 'array' ? value : new Map(Object.entries(value as object));
  };
  const codeOr = (outcome: object): unknown => ('code' in outcome ? outcome.code : outcome);
  await fc.assert(
    fc.asyncProperty(fc.array(mark, { maxLength: 9 }), async (parts) => {
      const text = parts.join('');
      expect(codeOr(await readList(text))).toEqual(expected(text, 'array'));
      expect(codeOr(await readBans(text))).toEqual(expected(text, 'object'));
    }),
    { numRuns: 2000 },
  );
});

test('a text that never ends, or nests endlessly, is refused without being kept', async () => {
  for (const text of [`["${'x'.repeat(1_000_000)}`, `[${' '.repeat(1_000_000)}`]) {
    expect(await readList(text)).toEqual({ code: 'invalid-json' });
  }
  expect(await readList('['.repeat(1_000_000))).toMatchObject({ code: 'invalid-body' });
  expect(await readBans(`{"a":[${'[],'.repeat(1_000_000)}`)).toMatchObject({ code: 'invalid-body' });
});
