import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createRowReader, type Cell, type Columns } from '../../../src/migration/sources/columns.ts';
import { parseRecord, requiredFields, type Parsed } from '../../../src/migration/records/parse.ts';
import { entityNames, shapes, type Entity } from '../../../src/migration/records/records.ts';

const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex');
const wallet = `0x${'aB'.repeat(20)}`;
const whole = {
  organizationId: 'acme',
  userId: 'u1',
  username: 'Zoë',
  profilePictureUrl: 'https://cdn.example.com/1.png',
  profilePictureObjectDefinitionId: { datasourceId: 'ds', objectDefinitionId: 'hat' },
  avatar: { url: 'https://cdn.example.com/hat.png', datasourceId: 'ds', objectDefinitionId: 'hat' },
  evmWalletAddress: wallet,
  evmWalletVerified: true,
  updatedAt: 1_767_323_045_678,
};

function record(entity: Entity, raw: Record<string, unknown>): unknown {
  const parsed = parseRecord(entity, structuredClone(raw));
  return parsed.ok ? parsed.record : `refused: ${parsed.reason}`;
}

function parseCells(entity: Entity, columns: Columns, cells: readonly Cell[]): Parsed {
  return parseRecord(entity, createRowReader(columns)(cells));
}

function profile(fields: Record<string, unknown>): unknown {
  return record('profiles', { organizationId: 'acme', userId: 'u1', ...fields });
}

describe('a profile', () => {
  test('keeps every field it has', () => {
    expect(record('profiles', whole)).toStrictEqual(whole);
  });

  test('needs an organization and a user, and nothing else', () => {
    expect(record('profiles', { organizationId: 'acme', userId: 'u1' })).toStrictEqual({
      organizationId: 'acme',
      userId: 'u1',
    });
    expect(record('profiles', { organizationId: 'acme' })).toBe('refused: userId is missing');
    expect(record('profiles', { userId: 'u1' })).toBe('refused: organizationId is missing');
    expect(record('profiles', {})).toMatch(/^refused: /);
  });

  test('takes a number as an id, unless JSON has lost its last digits', () => {
    expect(record('profiles', { organizationId: 7, userId: 0 })).toStrictEqual({
      organizationId: '7',
      userId: '0',
    });
    expect(record('profiles', JSON.parse('{"organizationId":1,"userId":9007199254740993}'))).toBe(
      'refused: userId is a number that cannot be read exactly; give it as a string',
    );
    expect(record('profiles', { organizationId: 1, userId: 1.5 })).toMatch(/^refused: userId is a number/);
  });

  test('also takes a number as a username, with a warning: leading zeros are lost', () => {
    const warnings = [expect.stringMatching(/^username is a number/)];
    expect(parseRecord('profiles', { organizationId: 'acme', userId: 'u1', username: 123 })).toEqual({
      ok: true,
      record: { organizationId: 'acme', userId: 'u1', username: '123' },
      warnings,
    });
    expect(parseRecord('denylist', { organizationId: 'acme', username: 0 })).toEqual({
      ok: true,
      record: { organizationId: 'acme', username: '0' },
      warnings,
    });
    expect(profile({ username: 1.5 })).toMatch(/^refused: username is a number that cannot be read exactly/);
    expect(profile({ username: true })).toBe('refused: username must be text');
  });

  test.each([null, undefined, ''])('treats %p as an absent field', (none) => {
    const fields = Object.fromEntries([...shapes.profiles.fields.keys()].map((field) => [field, none]));
    expect(profile({ ...fields, organizationId: 'acme', userId: 'u1' })).toStrictEqual({
      organizationId: 'acme',
      userId: 'u1',
    });
  });

  test.each(['nickname', '__proto__', 'constructor', 'toString', 'avatar.size', 'username '])(
    'refuses the unknown field %s by name',
    (field) => {
      const raw = JSON.parse(`{"organizationId":"a","userId":"u",${JSON.stringify(field)}:{"x":1}}`);
      expect(record('profiles', raw)).toContain(`unknown field ${JSON.stringify(field)}`);
    },
  );

  test('does not repeat all of a long field that is unknown', () => {
    expect(profile({ [`${'x'.repeat(64)}rest`]: 1 })).toBe(`refused: unknown field "${'x'.repeat(64)}…"`);
  });

  test.each([
    ['user_id', 'userId'],
    ['organizationid', 'organizationId'],
    ['Avatar.DatasourceID', 'avatar.datasourceId'],
  ])('suggests what was meant by %s', (given, meant) => {
    expect(profile({ [given]: 'x' })).toBe(`refused: unknown field "${given}" (is ${meant} meant?)`);
  });

  test.each([
    ['a lone surrogate', 'x\ud800', 'must be well-formed Unicode'],
    ['a NUL', 'a\0b', 'must not contain control characters'],
    ['a line feed', 'a\nb', 'must not contain control characters'],
    ['a C1 control', 'a\u0085b', 'must not contain control characters'],
    ['257 code points', 'x'.repeat(257), 'must be at most 256 characters long'],
  ])('refuses ids and names with %s', (_, value, reason) => {
    expect(profile({ username: value })).toBe(`refused: username ${reason}`);
    expect(profile({ userId: value })).toBe(`refused: userId ${reason}`);
  });

  test('takes any other text as a name, 256 code points beyond the BMP included', () => {
    for (const username of [' ', '__proto__', '123', '😀'.repeat(256), 'e\u0301', '\u202e', '👩‍👩‍👧']) {
      expect(profile({ username })).toMatchObject({ username });
    }
  });

  test('takes nested fields whole, as JSON text, or by dotted names, to the same record', () => {
    const avatar = { datasourceId: 'ds', objectDefinitionId: 'hat', url: 'https://x.example/1.png' };
    const expected = { organizationId: 'acme', userId: 'u1', avatar };
    expect(profile({ avatar })).toStrictEqual(expected);
    expect(profile({ avatar: JSON.stringify(avatar) })).toStrictEqual(expected);
    const dotted = Object.fromEntries(
      Object.entries(avatar).map(([field, value]) => [`avatar.${field}`, value]),
    );
    expect(profile(dotted)).toStrictEqual(expected);
  });

  test.each([{}, { datasourceId: null, objectDefinitionId: '' }, '{}', 'null'])(
    'treats the nested object %p as absent',
    (avatar) => {
      expect(profile({ avatar })).toStrictEqual({ organizationId: 'acme', userId: 'u1' });
    },
  );

  test.each([{}, { url: null }, '{}', 'null'])(
    'takes a nested object by its parts, if %p is given for the whole',
    (avatar) => {
      const parts = { 'avatar.datasourceId': 'd', 'avatar.objectDefinitionId': 'o' };
      const read = { avatar: { datasourceId: 'd', objectDefinitionId: 'o' } };
      expect(profile({ avatar, ...parts })).toMatchObject(read);
      expect(profile({ ...parts, avatar })).toMatchObject(read);
    },
  );

  test.each([
    [{ avatar: { datasourceId: 'ds' } }, 'avatar.objectDefinitionId is missing'],
    [{ 'avatar.url': 'https://x.example' }, 'avatar.datasourceId is missing'],
    [{ avatar: { size: 1 } }, 'avatar has an unknown field "size"'],
    [{ avatar: JSON.parse('{"__proto__": 1}') as unknown }, 'avatar has an unknown field "__proto__"'],
    [{ avatar: [] }, 'avatar must be an object, or the JSON text of one'],
    [{ avatar: '{"datasourceId":' }, 'avatar must be an object, or the JSON text of one'],
    [
      { avatar: { datasourceId: 'd\n', objectDefinitionId: 'o' } },
      'avatar.datasourceId must not contain control characters',
    ],
    [
      { avatar: { datasourceId: 'd', objectDefinitionId: 'o' }, 'avatar.url': 'https://x.example' },
      'avatar is given both whole and by its parts',
    ],
    [
      { 'avatar.url': 'https://x.example', avatar: { datasourceId: 'd', objectDefinitionId: 'o' } },
      'avatar is given both whole and by its parts',
    ],
  ])('refuses %j, naming the place', (fields, reason) => {
    expect(profile(fields)).toBe(`refused: ${reason}`);
  });

  test.each([
    ['2026-01-02T03:04:05.678Z', 1_767_323_045_678],
    ['2026-01-02T03:04:05Z', 1_767_323_045_000],
    ['2026-01-02T03:04Z', 1_767_323_040_000],
    ['2026-01-02t03:04:05z', 1_767_323_045_000],
    ['2026-01-02T05:04:05.678+02:00', 1_767_323_045_678],
    ['2026-01-01T19:34:05.678-0730', 1_767_323_045_678],
    ['2026-01-02 03:04:05.678901+00', 1_767_323_045_678],
    ['2026-01-02 03:04:05,6 Z', 1_767_323_045_600],
    ['2024-02-29T00:00:00Z', 1_709_164_800_000],
    ['1767323045678', 1_767_323_045_678],
    ['1767323045678.9', 1_767_323_045_678],
    [1_767_323_045_678, 1_767_323_045_678],
    [0, 0],
  ])('reads updatedAt %p as a moment', (updatedAt, moment) => {
    expect(profile({ updatedAt })).toMatchObject({ updatedAt: moment });
  });

  test.each(['2026-01-02T03:04:05', '2026-01-02 03:04:05.678', '2026-01-02T03:04'])(
    'refuses updatedAt %p, which has no zone',
    (updatedAt) => {
      expect(profile({ updatedAt })).toMatch(/^refused: updatedAt has no time zone; add one/);
    },
  );

  test.each([
    'yesterday',
    '2026-01-02',
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:61Z',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00+2',
    '2026-01-01T00:00:00+24:00',
    '0000-00-00 00:00:00Z',
    'infinity',
    1e300,
    true,
    {},
  ])('refuses updatedAt %p', (updatedAt) => {
    expect(profile({ updatedAt })).toMatch(/^refused: updatedAt must be an ISO 8601/);
  });

  test.each([
    '0001-01-01T00:00:00Z',
    '1969-12-31T23:59:59.999Z',
    '1900-01-01 00:00:00+00',
    '1970-01-01T00:59:59+01:00',
    '-2208988800000',
    -1,
  ])('says of updatedAt %p that it must not be before 1970', (updatedAt) => {
    expect(profile({ updatedAt })).toBe(
      'refused: updatedAt must not be before 1970: where it means none, leave it out',
    );
  });

  test('reads any time that a Date can hold', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true }),
        (date) => {
          expect(profile({ updatedAt: date.toISOString() })).toMatchObject({ updatedAt: date.getTime() });
        },
      ),
    );
  });

  test.each([1_767_323_045, '20260101', 2026, '1970-01-21T10:55:23Z'])(
    'warns where updatedAt is before 1974, such as at %j, which may be meant otherwise',
    (updatedAt) => {
      expect(parseRecord('profiles', { organizationId: 'a', userId: 'u', updatedAt })).toMatchObject({
        ok: true,
        warnings: [
          'updatedAt is before 1974: give ISO 8601 with a zone, or milliseconds (not seconds, not YYYYMMDD)',
        ],
      });
    },
  );

  test('does not warn where updatedAt is 0, which stands for never', () => {
    const never = { organizationId: 'a', userId: 'u', updatedAt: 0 };
    expect(parseRecord('profiles', never)).toStrictEqual({ ok: true, record: never });
  });

  test.each([0, '1767323045', '1970-01-21T10:55:23Z'])(
    'warns of an API key that expired before 1974, such as at %j, which may be meant otherwise',
    (expiresAt) => {
      const raw = { organizationId: 'a', apiKey: 'k', role: 'player', expiresAt };
      expect(parseRecord('api-keys', raw)).toMatchObject({
        ok: true,
        warnings: [expect.stringMatching(/^expiresAt is before 1974: the key has expired/)],
      });
      expect(parseRecord('api-keys', { ...raw, expiresAt: '2020-01-01T00:00:00Z' })).not.toHaveProperty(
        'warnings',
      );
    },
  );

  test.each(['k ', '\tk', 'k\n', 'k\r\n', 'a\u0000b'])(
    'warns of the API key %j, which no client can send, without showing it',
    (apiKey) => {
      const columns = ['organizationId', 'role', 'apiKey'];
      const warnings = ['apiKey has a control character, or white space at an end: no client can send it'];
      const expected = { ok: true, record: { apiKeySha256: sha256(apiKey) }, warnings };
      expect(parseRecord('api-keys', { organizationId: 'a', role: 'player', apiKey })).toMatchObject(
        expected,
      );
      expect(parseCells('api-keys', columns, ['a', 'player', apiKey])).toMatchObject(expected);
      expect(parseCells('api-keys', columns, ['a', 'player', 'a k'])).not.toHaveProperty('warnings');
    },
  );

  test.each([' acme', 'acme '])(
    'warns of the organization %j, which no request can name',
    (organizationId) => {
      expect(parseRecord('organizations', { organizationId })).toMatchObject({
        ok: true,
        record: { organizationId },
        warnings: ['organizationId has a space at an end: no request can name it'],
      });
      expect(parseRecord('organizations', { organizationId: 'a c' })).not.toHaveProperty('warnings');
    },
  );

  test('has an unverified wallet by default, and no verification without a wallet', () => {
    expect(profile({ evmWalletAddress: wallet })).toMatchObject({
      evmWalletAddress: wallet,
      evmWalletVerified: false,
    });
    expect(profile({ evmWalletVerified: false })).toStrictEqual({ organizationId: 'acme', userId: 'u1' });
    expect(
      parseRecord('profiles', { organizationId: 'a', userId: 'u', evmWalletVerified: true }),
    ).toStrictEqual({
      ok: true,
      record: { organizationId: 'a', userId: 'u' },
      warnings: ['evmWalletVerified is given without evmWalletAddress'],
    });
  });

  test.each([
    '0x12',
    `0X${'a'.repeat(40)}`,
    `0x${'g'.repeat(40)}`,
    `0x${'a'.repeat(41)}`,
    `0x${'a'.repeat(40)}\n`,
  ])('refuses the wallet %j', (evmWalletAddress) => {
    expect(profile({ evmWalletAddress })).toBe(
      'refused: evmWalletAddress must be 0x and 40 hexadecimal digits',
    );
  });

  test.each([
    [true, true],
    [1, true],
    ['1', true],
    ['true', true],
    ['TRUE', true],
    ['t', true],
    [false, false],
    [0, false],
    ['0', false],
    ['false', false],
    ['f', false],
  ])('reads the flag %p', (given, meant) => {
    expect(profile({ evmWalletAddress: wallet, evmWalletVerified: given })).toMatchObject({
      evmWalletVerified: meant,
    });
  });

  test('keeps a picture URL as it is, however long', () => {
    for (const profilePictureUrl of [
      '/relative.png',
      `data:image/png;base64,${'A'.repeat(9000)}`,
      'http://x/\n',
    ]) {
      expect(profile({ profilePictureUrl })).toMatchObject({ profilePictureUrl });
    }
  });

  test('is read the same nested and by dotted names', () => {
    const text = fc.oneof(
      fc.string({ minLength: 1, maxLength: 300 }),
      fc.integer(),
      fc.constantFrom('', null, true, [], {}),
    );
    const fields = { url: text, datasourceId: text, objectDefinitionId: text, extra: text };
    fc.assert(
      fc.property(fc.record(fields, { requiredKeys: [], noNullPrototype: true }), (avatar) => {
        const dotted = Object.entries(avatar).map(([name, value]) => [`avatar.${name}`, value]);
        const isUnknown = 'extra' in avatar;
        const byParts = profile(Object.fromEntries(dotted));
        if (isUnknown) expect(byParts).toBe('refused: unknown field "avatar.extra"');
        else expect(byParts).toStrictEqual(profile({ avatar }));
      }),
      { numRuns: 500 },
    );
  });

  test('is unchanged by being read again', () => {
    const name = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
      .filter((text) => !/\p{Cc}/u.test(text));
    fc.assert(
      fc.property(
        fc.record(
          {
            organizationId: name,
            userId: name,
            username: name,
            profilePictureUrl: name,
            updatedAt: fc.nat(),
          },
          { requiredKeys: ['organizationId', 'userId'], noNullPrototype: true },
        ),
        (raw) => {
          const first = record('profiles', raw);
          expect(record('profiles', JSON.parse(JSON.stringify(first)))).toStrictEqual(first);
        },
      ),
    );
  });
});

describe('an API key', () => {
  const key = { organizationId: 'acme', role: 'player' };

  test('is kept only as its SHA-256, whether given plain or hashed', () => {
    const expected = { ...key, apiKeySha256: sha256('legacy-key') };
    expect(record('api-keys', { ...key, apiKey: 'legacy-key' })).toStrictEqual(expected);
    expect(record('api-keys', { ...key, apiKeySha256: sha256('legacy-key').toUpperCase() })).toStrictEqual(
      expected,
    );
    expect(
      record('api-keys', { ...key, apiKey: 'legacy-key', apiKeySha256: sha256('legacy-key') }),
    ).toStrictEqual(expected);
  });

  test.each([
    [{}, 'apiKey or apiKeySha256 is missing'],
    [{ apiKeySha256: 'abc' }, 'apiKeySha256 must be 64 hexadecimal digits'],
    [{ apiKey: 'very-private', apiKeySha256: 'a'.repeat(64) }, 'apiKeySha256 is not the SHA-256 of apiKey'],
    [{ apiKey: { very: 'private' } }, 'apiKey must be text'],
    [{ apiKey: 'very-private', role: 'owner' }, 'role must be player or admin'],
    [
      { apiKey: 'very-private', expiresAt: 'soon' },
      'expiresAt must be an ISO 8601 date and time with a zone, or epoch milliseconds',
    ],
    [
      { apiKey: 'very-private', expiresAt: '0001-01-01T00:00:00Z' },
      'expiresAt must not be before 1970: where it means none, leave it out',
    ],
    [{ apiKeySha256: 'very-private' }, 'apiKeySha256 must be 64 hexadecimal digits'],
  ])('is refused for %j, without showing the key', (fields, reason) => {
    const parsed = parseRecord('api-keys', { ...key, ...fields });
    expect(parsed).toStrictEqual({ ok: false, reason });
    expect(JSON.stringify(parsed)).not.toContain('very-private');
  });

  test('may have a user, a client label and an expiry', () => {
    expect(
      record('api-keys', {
        ...key,
        apiKey: 'k',
        userId: 7,
        client: 'ios-4.2',
        expiresAt: '2027-01-01T00:00:00Z',
      }),
    ).toStrictEqual({
      ...key,
      apiKeySha256: sha256('k'),
      userId: '7',
      client: 'ios-4.2',
      expiresAt: Date.UTC(2027, 0, 1),
    });
  });
});

describe('an organization', () => {
  test('keeps its settings, from JSON and from text', () => {
    const settings = {
      organizationId: 'acme',
      usernameMinLength: 3,
      usernameMaxLength: 20,
      usernamePattern: '[a-z]+',
      usernameComparison: 'case-insensitive',
      objectImageUrlTemplate: 'https://cdn.example.com/{datasourceId}/{objectDefinitionId}.png',
      requireOwnership: true,
    };
    expect(record('organizations', settings)).toStrictEqual(settings);
    const asText = Object.fromEntries(
      Object.entries(settings).map(([field, value]) => [field, String(value)]),
    );
    expect(record('organizations', asText)).toStrictEqual(settings);
  });

  test.each([
    [{ usernamePattern: '(?=x)' }, /the username pattern is not a valid RE2 pattern/],
    [{ usernameMinLength: 0 }, /minimum username length must be a whole number from 1 to 256/],
    [{ usernameMaxLength: '9999' }, /maximum username length/],
    [{ usernameMaxLength: 0 }, /: the maximum username length must be a whole number from 1 to 256$/],
    [{ usernameMinLength: 9, usernameMaxLength: 3 }, /minimum username length \(9\) is above the maximum/],
    [{ usernameMinLength: 1.5 }, /usernameMinLength must be a whole number/],
    [{ usernameComparison: 'sounds-like' }, /usernameComparison must be exact or case-insensitive/],
    [{ objectImageUrlTemplate: 'nowhere' }, /the object URL template/],
    [{ requireOwnership: 'maybe' }, /requireOwnership must be true or false/],
  ])('is refused for %j', (fields, reason) => {
    expect(record('organizations', { organizationId: 'acme', ...fields })).toMatch(reason);
  });
});

describe('objects, collections and the denylist', () => {
  const reference = { datasourceId: 'ds', objectDefinitionId: 'hat' };

  test('keep their fields, which are all required', () => {
    const records: [Entity, Record<string, string>][] = [
      ['objects', { organizationId: 'acme', ...reference, url: 'https://cdn.example.com/hat.png' }],
      ['collections', { organizationId: 'acme', userId: 'u1', ...reference }],
      ['denylist', { organizationId: 'acme', username: '__proto__' }],
    ];
    for (const [entity, fields] of records) {
      expect(record(entity, fields)).toStrictEqual(fields);
      expect(requiredFields(entity).flat().toSorted()).toEqual(Object.keys(fields).toSorted());
      for (const field of Object.keys(fields)) {
        expect(record(entity, { ...fields, [field]: '' })).toBe(`refused: ${field} is missing`);
      }
    }
  });
});

/** A cell that a field takes, or any other. */
function cellOf(field = ''): fc.Arbitrary<string | null> {
  const usual: Readonly<Record<string, readonly string[]>> = {
    role: ['player', 'admin'],
    apiKeySha256: ['aB'.repeat(32)],
    usernameMinLength: ['1', '7'],
    usernameMaxLength: ['7', '300'],
    usernameComparison: ['exact', 'case-insensitive'],
    requireOwnership: ['0', 't'],
    evmWalletAddress: [wallet],
    evmWalletVerified: ['f', 'true'],
    updatedAt: ['2026-01-02 03:04:05+00', '1767323045678', '1767323045'],
    expiresAt: ['2026-01-02T03:04:05Z'],
    avatar: ['{}', '{"datasourceId":"d","objectDefinitionId":"o"}', '{"__proto__":1}'],
  };
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...(usual[field] ?? ['acme', 'ünï'])) },
    { weight: 2, arbitrary: fc.constantFrom(null, '') },
    fc.string({ unit: 'binary', maxLength: 4 }),
  );
}

test.each(entityNames)('a row of cells of %s is read as the object that it stands for', (entity) => {
  const rows = fc
    .shuffledSubarray([...shapes[entity].fields.keys(), undefined])
    .chain((columns) => fc.tuple(fc.constant(columns), fc.array(fc.tuple(...columns.map(cellOf)))));
  let records = 0;
  fc.assert(
    fc.property(rows, ([columns, given]) => {
      for (const cells of given) {
        const named = columns.flatMap((name, at) => (name === undefined ? [] : [[name, cells[at]]]));
        const parsed = parseRecord(entity, Object.fromEntries(named));
        expect(parseCells(entity, columns, cells)).toStrictEqual(parsed);
        if (parsed.ok) records += 1;
      }
    }),
    { numRuns: 300 },
  );
  expect(records).toBeGreaterThan(0);
});

test('cells give whole profiles, with nested fields as JSON text or by their parts', () => {
  const parts = Object.entries(whole.avatar).map(([field, value]) => [`avatar.${field}`, value]);
  const { avatar: _, profilePictureObjectDefinitionId: reference, ...rest } = whole;
  const fields = [
    ...Object.entries(rest),
    ...parts,
    ['profilePictureObjectDefinitionId', JSON.stringify(reference)],
  ];
  const columns = fields.map(([name = '']) => name);
  const cells = fields.map(([, value]) => String(value));
  expect(parseCells('profiles', columns, cells)).toStrictEqual({ ok: true, record: whole });
  const none = columns.map((name) => (['organizationId', 'userId'].includes(name) ? 'x' : null));
  expect(parseCells('profiles', columns, none)).toStrictEqual({
    ok: true,
    record: { organizationId: 'x', userId: 'x' },
  });
});

test.each(entityNames)('any row of %s gives a record or a reason, and changes no prototype', (entity) => {
  fc.assert(
    fc.property(
      fc.object({
        withObjectString: true,
        key: fc.constantFrom('__proto__', 'organizationId', 'avatar', 'username', 'x'),
      }),
      (raw) => {
        const parsed = parseRecord(entity, raw);
        expect(typeof (parsed.ok ? parsed.record : parsed.reason)).toMatch(/object|string/);
        expect(Object.keys(Object.prototype)).toEqual([]);
      },
    ),
  );
});
