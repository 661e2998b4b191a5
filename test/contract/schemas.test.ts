import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { nameErrors, profileChangeErrors, replacementErrors } from '../../src/contract/schemas.ts';
import { nameFault } from '../../src/domain/usernames.ts';

const changeErrors = (body: unknown): Record<string, string> =>
  Object.fromEntries(profileChangeErrors(body).map(({ path, message }) => [path, message]));

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
    expect(nameErrors(name, '/0')).toEqual([]);
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
    expect(nameErrors(name, '/1')).toEqual([{ path: '/1', message }]);
  });

  test('of 15 MB is refused by its length, without a look at its characters', () => {
    const name = 'a'.repeat(15_000_000);
    const spentOn = (work: () => void): number => {
      const before = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    const reading = spentOn(() => {
      for (const character of name) if (character === 'b') break;
    });
    const refusing = spentOn(() => {
      expect(nameErrors(name, '/0')).toEqual([
        { path: '/0', message: 'must be at most 256 characters long' },
      ]);
      expect(replacementErrors('a', name)).toHaveLength(1);
    });
    expect(refusing).toBeLessThan(reading / 2);
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
        expect(nameErrors(name, '').length === 0).toBe(nameFault(name) === undefined);
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
    expect(profileChangeErrors(body)).toEqual([]);
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
    const body = JSON.parse('{"__proto__": {"username": 7, "profilePicture": 1}}') as { username?: unknown };
    expect(profileChangeErrors(body)).toEqual([]);
    expect(body.username).toBeUndefined();
  });
});

describe('a replacement', () => {
  test('distinguishes an invalid name from an invalid replacement', () => {
    expect(replacementErrors('ok', 'fine')).toEqual([]);
    expect(replacementErrors('', 'x')).toEqual([{ path: '/', message: 'its name must not be empty' }]);
    expect(replacementErrors('a/b~c\n', '')).toEqual([
      { path: '/a~1b~0c\n', message: 'its name must not contain control characters' },
      { path: '/a~1b~0c\n', message: 'must not be empty' },
    ]);
    expect(replacementErrors('__proto__', null)).toEqual([
      { path: '/__proto__', message: 'must be a string' },
    ]);
  });

  test('does not echo very long names or lone surrogates in errors', () => {
    for (const name of ['x'.repeat(1_000_000), '\uD800']) {
      const text = JSON.stringify(replacementErrors(name, 'a'));
      expect(text.length).toBeLessThan(500);
      expect(text).not.toContain('\\ud800');
    }
  });
});
