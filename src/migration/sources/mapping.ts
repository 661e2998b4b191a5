import { readFile } from 'node:fs/promises';
import { parseDocument } from 'yaml';
import { fieldNames, requiredFields, unknownField } from '../records/parse.ts';
import { entityNames, isEntity } from '../records/records.ts';
import type { Entity } from '../records/records.ts';
import { SourceError } from './source.ts';

/** How one entity is read: databases need query and key; fields maps record fields to columns or JSON pointers. */
export interface EntityMapping {
  /** A plain SELECT. */
  readonly query?: string;
  /** The columns that order the query's rows uniquely. */
  readonly key?: readonly string[];
  /** Record field (nested ones dotted) to column name or JSON pointer. */
  readonly fields?: ReadonlyMap<string, string>;
}

export type Mapping = ReadonlyMap<Entity, EntityMapping>;

/** Reads a mapping file; every mistake in it is a SourceError that names the place. */
export async function readMapping(path: string): Promise<Mapping> {
  let yaml: string;
  try {
    yaml = await readFile(path, 'utf8');
  } catch (error) {
    throw new SourceError(
      `cannot read the mapping ${path} (${(error as NodeJS.ErrnoException).code ?? 'error'}): check --mapping`,
    );
  }
  return parseMapping(yaml, path);
}

/** Reads a mapping's YAML; `path` only names it in errors. */
export function parseMapping(yaml: string, path: string): Mapping {
  const document = parseDocument(yaml);
  const [broken] = document.errors;
  if (broken !== undefined) {
    throw new SourceError(
      `${path} is not valid YAML: ${broken.message.split('\n')[0]?.replace(/:$/, '') ?? ''}`,
    );
  }
  const fail = (where: string, what: string): never => {
    throw new SourceError(`${path}: ${where} ${what}`);
  };
  const top = asMap(document.toJS({ mapAsMap: true }));
  if (top === undefined) return fail('the mapping', 'must be an object such as "entities: {profiles: {…}}"');
  for (const name of top.keys())
    if (name !== 'entities') fail(shown(name), 'is unknown; the only top-level name is entities');
  const entities = asMap(top.get('entities'));
  if (entities === undefined || entities.size === 0)
    return fail('entities', `must name at least one of ${entityNames.join(', ')}`);

  const mapping = new Map<Entity, EntityMapping>();
  for (const [name, value] of entities) {
    const where = `entities.${String(name)}`;
    if (typeof name !== 'string' || !isEntity(name))
      return fail(where, `is unknown; there are ${entityNames.join(', ')}`);
    mapping.set(
      name,
      readEntity(
        name,
        where,
        asMap(value) ?? fail(where, 'must be an object with query and key, or fields'),
        fail,
      ),
    );
  }
  return mapping;
}

type Fail = (where: string, what: string) => never;

function readEntity(
  entity: Entity,
  where: string,
  given: ReadonlyMap<unknown, unknown>,
  fail: Fail,
): EntityMapping {
  const mapping: { query?: string; key?: readonly string[]; fields?: ReadonlyMap<string, string> } = {};
  for (const [name, value] of given) {
    if (name === 'query') {
      if (typeof value !== 'string' || value.trim() === '') return fail(`${where}.query`, 'must be a SELECT');
      mapping.query = value;
    } else if (name === 'key') {
      mapping.key = readKey(value) ?? fail(`${where}.key`, 'must be a list of different column names');
    } else if (name === 'fields') {
      mapping.fields = readFields(
        entity,
        `${where}.fields`,
        asMap(value) ?? fail(`${where}.fields`, 'must map record fields to columns or JSON pointers'),
        fail,
      );
    } else {
      fail(where, `has an unknown setting ${shown(name)}; there are query, key and fields`);
    }
  }
  return mapping;
}

function readKey(value: unknown): readonly string[] | undefined {
  const columns = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(columns) || columns.length === 0 || new Set(columns).size < columns.length)
    return undefined;
  return columns.every((column): column is string => typeof column === 'string' && column !== '')
    ? columns
    : undefined;
}

function readFields(
  entity: Entity,
  where: string,
  given: ReadonlyMap<unknown, unknown>,
  fail: Fail,
): ReadonlyMap<string, string> {
  const known = new Set(fieldNames(entity));
  const fields = new Map<string, string>();
  for (const [field, place] of given) {
    if (typeof field !== 'string' || !known.has(field))
      return fail(where, `names an ${unknownField(entity, String(field))}`);
    if (typeof place !== 'string' || place === '')
      return fail(`${where}.${field}`, 'must be a column name or a JSON pointer');
    const parent = field.split('.')[0] ?? field;
    if (parent !== field && given.has(parent))
      return fail(where, `gives ${parent} both whole and by its parts`);
    fields.set(field, place);
  }
  for (const group of requiredFields(entity)) {
    if (!group.some((field) => fields.has(field))) fail(where, `lacks ${group.join(' or ')}`);
  }
  return fields;
}

function asMap(value: unknown): ReadonlyMap<unknown, unknown> | undefined {
  return value instanceof Map ? (value as ReadonlyMap<unknown, unknown>) : undefined;
}

function shown(name: unknown): string {
  return JSON.stringify(String(name));
}
