import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  validateProfileChange,
  validateReplacements,
  validateUsernames,
  type Validated,
} from '../../src/contract/schemas.ts';
import { nameFault } from '../../src/domain/usernames.ts';

const errorsOf = (validated: Validated<unknown>): Record<string, string> =>
  validated.ok ? {} : Object.fromEntries(validated.errors.map(({ path, message }) => [path, message]));
const changeErrors = (body: unknown) => errorsOf(validateProfileChange(body));

describe('a name', () => {
  test.each([
    ['one character', 'a'],
    ['256 characters', 'a'.repeat(256)],
    ['256 astral characters', '💥'.repeat(256)],
    ['spaces', ' a b '],
    ['markup', '<script>alert(1)</script>'],
    ['a name of the language itself', '__proto__'],
    ['digits', '123'],
    ['bidirectional marks', '\u202Eabc'],
    ['a joined emoji', '👩‍👩‍👧‍👦'],
    ['combining marks', 'Z͑ͫ̓ͪ̂ͫ̽͏̴̙'],
    ['a no-break space, just above the control characters', '\u00A0'],
    ['a noncharacter', '\uFFFF'],
  ])('may be %s', (_, name) => {
    expect(validateUsernames([name])).toEqual({ ok: true, value: [name] });
  });

  test.each([
    ['empty', '', 'must not be empty'],
    ['257 characters', 'a'.repeat(257), 'must be at most 256 characters long'],
    ['257 astral characters', '💥'.repeat(257), 'must be at most 256 characters long'],
    ['a line break', 'a\n', 'must not contain control characters'],
    ['NUL', '\0', 'must not contain control characters'],
    ['DEL', '\u007F', 'must not contain control characters'],
    ['a C1 control', '\u0085', 'must not contain control characters'],
    ['a lone high surrogate', 'a\uD800', 'must be well-formed Unicode'],
    ['a lone low surrogate', '\uDFFFa', 'must be well-formed Unicode'],
    ['surrogates the wrong way round', '\uDE00\uD83D', 'must be well-formed Unicode'],
    ['null', null, 'must be a string'],
    ['a number', 1, 'must be a string'],
    ['an object', {}, 'must be a string'],
  ])('may not be %s', (_, name, message) => {
    expect(errorsOf(validateUsernames(['ok', name]))).toEqual({ '/1': message });
  });

  test('is validated by the schema exactly as by the domain', () => {
    const unit = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 4 }),
      fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
      fc.constantFrom('a'.repeat(255), '💥'.repeat(128)),
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 4 }), (parts) => {
        const name = parts.join('');
        expect(validateUsernames([name]).ok).toBe(nameFault(name) === undefined);
      }),
    );
  });
});

describe('a profile change', () => {
  test.each([
    ['nothing', {}],
    ['a username', { username: 'Ada' }],
    [
      'references',
      {
        profilePictureObjectDefinitionId: { datasourceId: 'd', objectDefinitionId: 'o' },
        avatarObjectDefinitionId: null,
      },
    ],
    ['fields nobody knows', { theme: 'dark', constructor: 1, avatar: { url: '' } }],
    [
      'fields nobody knows in a reference',
      { avatarObjectDefinitionId: { datasourceId: 'd', objectDefinitionId: 'o', x: 1 } },
    ],
  ])('may hold %s', (_, body) => {
    expect(validateProfileChange(body)).toEqual({ ok: true, value: body });
  });

  test.each([
    ['null', null, { '': 'must be an object' }],
    ['an array', [], { '': 'must be an object' }],
    ['a string', 'Ada', { '': 'must be an object' }],
    ['a null username', { username: null }, { '/username': 'must be a string' }],
    ['an empty username', { username: '' }, { '/username': 'must not be empty' }],
    ['a picture', { profilePicture: 'x' }, { '/profilePicture': 'must not be set' }],
    ['a null picture', { profilePicture: null }, { '/profilePicture': 'must not be set' }],
    [
      'a reference that is none',
      { avatarObjectDefinitionId: 'fox' },
      { '/avatarObjectDefinitionId': 'must be an object or null' },
    ],
    [
      'half a reference',
      { avatarObjectDefinitionId: { datasourceId: 'd' } },
      { '/avatarObjectDefinitionId/objectDefinitionId': 'must be present' },
    ],
    [
      'null in a reference',
      { profilePictureObjectDefinitionId: { datasourceId: null, objectDefinitionId: 'a\nb' } },
      {
        '/profilePictureObjectDefinitionId/datasourceId': 'must be a string',
        '/profilePictureObjectDefinitionId/objectDefinitionId': 'must not contain control characters',
      },
    ],
    [
      'several faults',
      { username: 7, profilePicture: 1, avatarObjectDefinitionId: [] },
      {
        '/username': 'must be a string',
        '/profilePicture': 'must not be set',
        '/avatarObjectDefinitionId': 'must be an object or null',
      },
    ],
  ])('may not be or hold %s', (_, body, errors) => {
    expect(changeErrors(body)).toEqual(errors);
  });

  test('treats __proto__ as an ordinary property', () => {
    const body: unknown = JSON.parse('{"__proto__": {"username": "Eve", "profilePicture": 1}}');
    const validated = validateProfileChange(body);
    expect(validated.ok && validated.value.username).toBeUndefined();
  });
});

describe('replacements', () => {
  test('may have any property name, including __proto__ and constructor', () => {
    const body = JSON.parse('{"__proto__": "a", "constructor": "b", "toString": "c", "123": "d"}') as object;
    const validated = validateReplacements(body);
    expect(validated.ok && new Map(Object.entries(validated.value))).toEqual(
      new Map([
        ['123', 'd'],
        ['__proto__', 'a'],
        ['constructor', 'b'],
        ['toString', 'c'],
      ]),
    );
  });

  test('are also validated under such a property', () => {
    expect(errorsOf(validateReplacements(JSON.parse('{"__proto__": 1, "constructor": null}')))).toEqual({
      '/__proto__': 'must be a string',
      '/constructor': 'must be a string',
    });
  });

  test('distinguish an invalid name from an invalid replacement', () => {
    expect(errorsOf(validateReplacements({ '': 'x', 'a/b~c\n': 'y', ok: '' }))).toEqual({
      '/': 'its name must not be empty',
      '/a~1b~0c\n': 'its name must not contain control characters',
      '/ok': 'must not be empty',
    });
  });

  test.each([[null], [[]], ['x'], [3]])('are an object, not %j', (body) => {
    expect(errorsOf(validateReplacements(body))).toEqual({ '': 'must be an object' });
  });

  test('do not echo very long names or lone surrogates in errors', () => {
    const validated = validateReplacements({ ['x'.repeat(1_000_000)]: 'a', '\uD800': 'b' });
    expect(JSON.stringify(validated).length).toBeLessThan(500);
    expect(JSON.stringify(validated)).not.toContain('\\ud800');
  });
});

describe('a list of usernames', () => {
  test.each([[null], [{}], ['x'], [3]])('is an array, not %j', (body) => {
    expect(errorsOf(validateUsernames(body))).toEqual({ '': 'must be an array' });
  });

  test('may be empty', () => {
    expect(validateUsernames([])).toEqual({ ok: true, value: [] });
  });

  test('reports the first 20 of many invalid names', () => {
    const validated = validateUsernames(Array.from({ length: 200_000 }, () => ''));
    expect(validated.ok ? [] : validated.errors.map(({ path }) => path)).toEqual(
      Array.from({ length: 20 }, (_, index) => `/${index}`),
    );
  });

  test('reports a single invalid name among 200,000', () => {
    const names = Array.from({ length: 200_000 }, (_, index) => `name-${index}`);
    expect(validateUsernames(names).ok).toBe(true);
    names.push('\t');
    expect(errorsOf(validateUsernames(names))).toEqual({ '/200000': 'must not contain control characters' });
  });
});
