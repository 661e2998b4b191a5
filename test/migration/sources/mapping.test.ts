import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parseMapping, readMapping } from '../../../src/migration/sources/mapping.ts';
import { messageOf } from './reading.ts';

describe('a mapping', () => {
  test('gives queries, keys and fields per entity', () => {
    const mapping = parseMapping(
      `
entities:
  profiles:
    query: |
      SELECT * FROM users;
    key: [org, id]
    fields: {organizationId: org, userId: id, avatar.url: picture}
  denylist: {query: SELECT 1, key: name}
`,
      'mapping.yaml',
    );
    expect([...mapping.keys()]).toEqual(['profiles', 'denylist']);
    expect(mapping.get('profiles')).toEqual({
      query: 'SELECT * FROM users;\n',
      key: ['org', 'id'],
      fields: new Map([
        ['organizationId', 'org'],
        ['userId', 'id'],
        ['avatar.url', 'picture'],
      ]),
    });
    expect(mapping.get('denylist')?.key).toEqual(['name']);
  });

  test('may say once what several entities share, by a merge key; what it says itself holds', () => {
    const mapping = parseMapping(
      `
entities:
  profiles: {fields: &ids {organizationId: org, userId: id}}
  collections:
    fields: {<<: *ids, userId: owner, datasourceId: d, objectDefinitionId: o}
`,
      'mapping.yaml',
    );
    expect(Object.fromEntries(mapping.get('collections')?.fields ?? [])).toEqual({
      organizationId: 'org',
      userId: 'owner',
      datasourceId: 'd',
      objectDefinitionId: 'o',
    });
  });

  test.each([
    ['', /the mapping must be an object/],
    ['[1]', /the mapping must be an object/],
    ['entity: {}', /"entity" is unknown; the only top-level name is entities/],
    ['entities: {}', /entities must name at least one of organizations, api-keys/],
    [
      'entities: {users: {query: SELECT 1}}',
      /entities\.users is not an entity: the entities are organizations/,
    ],
    ['entities: {__proto__: {query: SELECT 1}}', /entities\.__proto__ is not an entity/],
    ['entities: {profiles: SELECT 1}', /entities\.profiles must be an object/],
    [
      'entities: {profiles: {sql: SELECT 1}}',
      /entities\.profiles has an unknown setting "sql": the settings are query, key and fields/,
    ],
    ['entities: {profiles: {query: [1]}}', /entities\.profiles\.query must be a SELECT/],
    [
      'entities: {profiles: {query: SELECT 1, key: []}}',
      /entities\.profiles\.key must be a list of different column names/,
    ],
    [
      'entities: {profiles: {query: SELECT 1, key: [a, a]}}',
      /entities\.profiles\.key must be a list of different/,
    ],
    ['entities: {profiles: {query: SELECT 1, key: [1]}}', /entities\.profiles\.key must be a list/],
    ['entities: {profiles: {fields: [a]}}', /entities\.profiles\.fields must map record fields/],
    [
      'entities: {profiles: {fields: {user_id: id}}}',
      /entities\.profiles\.fields names an unknown field "user_id" \(is userId meant\?\)/,
    ],
    ['entities: {profiles: {fields: {organizationId: org}}}', /entities\.profiles\.fields lacks userId/],
    ['entities: {api-keys: {fields: {organizationId: o, role: r}}}', /fields lacks apiKey or apiKeySha256/],
    [
      'entities: {profiles: {fields: {organizationId: 1, userId: b}}}',
      /fields\.organizationId must be a column name or a JSON pointer/,
    ],
    [
      'entities: {profiles: {fields: {organizationId: a, userId: b, avatar: c, avatar.url: d}}}',
      /gives avatar both whole and by its parts/,
    ],
    ['entities: {profiles: {query: "SELECT', /is not valid YAML/],
    ['entities: {profiles: {query: *users}}', /is not valid YAML: Unresolved alias .*: users/],
    ['entities: {profiles: {<<: 1}}', /is not valid YAML: Merge sources must be maps/],
    ['entities: {profiles: &p {<<: *p}}', /is not valid YAML: Excessive alias count/],
    [
      'entities: {profiles: {fields: {<<: {__proto__: {userId: b}, organizationId: a}}}}',
      /names an unknown field "__proto__"/,
    ],
    ['entities: {profiles: {}, profiles: {}}', /is not valid YAML: Map keys must be unique/],
  ])('with the mistake %j is refused, naming the place in one line', async (yaml, message) => {
    const said = await messageOf(() => parseMapping(yaml, 'mapping.yaml'));
    expect(said).toMatch(/^SourceError: mapping\.yaml/);
    expect(said).toMatch(message);
    expect(said).not.toContain('\n');
  });

  test('is read from a file; one that cannot be read is named', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mapping-'));
    try {
      const path = join(folder, 'mapping.yaml');
      expect(await messageOf(() => readMapping(path))).toBe(
        `SourceError: cannot read the mapping ${path} (ENOENT): check --mapping`,
      );
      await writeFile(
        path,
        Buffer.from('\uFEFFentities: {profiles: {query: SELECT 1, key: [a]}}', 'utf16le'),
      );
      expect(await messageOf(() => readMapping(path))).toBe(
        `SourceError: the mapping ${path} is not UTF-8: save it as UTF-8`,
      );
      await writeFile(path, 'entities: {profiles: {query: SELECT 1, key: [a]}}');
      expect((await readMapping(path)).mapping.has('profiles')).toBe(true);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
