import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { missingField } from '../records/parse.ts';
import { entityNames, isEntity, shapes, type Entity } from '../records/records.ts';
import { isFields, unknownIn } from '../records/shapes.ts';
import { isMistakenAddress } from './database-urls.ts';
import { SourceError } from './source.ts';

/** How one entity is read: databases need query and key; fields maps record fields to columns or JSON pointers. */
export interface EntityMapping {
  /** A plain SELECT. */
  readonly query?: string | undefined;
  /** The columns that identify a row. */
  readonly key?: readonly string[] | undefined;
  /** Record field (nested ones dotted) to column name or JSON pointer. */
  readonly fields?: ReadonlyMap<string, string> | undefined;
}

export type Mapping = ReadonlyMap<Entity, EntityMapping>;

const noMapping =
  "--mapping is not a file, but looks like a database's address: give that as --source (it is not shown, since it may hold a password)";

/** Reads a mapping file, and gives its text as well; every mistake in it is a SourceError that names the place. */
export async function readMapping(path: string): Promise<{ mapping: Mapping; text: string }> {
  const yaml = await readFile(path).catch(({ code = 'error' }: NodeJS.ErrnoException) => {
    if (isMistakenAddress(path)) throw new SourceError(noMapping);
    throw new SourceError(`cannot read the mapping ${path} (${code}): check --mapping`);
  });
  if (!isUtf8(yaml)) throw new SourceError(`the mapping ${path} is not UTF-8: save it as UTF-8`);
  const text = yaml.toString();
  return { mapping: parseMapping(text, path), text };
}

/** Reads a mapping's YAML; `path` only names it in errors. */
export function parseMapping(yaml: string, path: string): Mapping {
  const top = readYaml(yaml, path);
  const fail: Fail = (where, what) => {
    throw new SourceError(`${path}: ${where} ${what}`);
  };
  if (!isFields(top)) return fail('the mapping', 'must be an object such as "entities: {profiles: {…}}"');
  const { entities, ...others } = top;
  for (const name of Object.keys(others))
    fail(JSON.stringify(name), 'is unknown; the only top-level name is entities');
  if (!isFields(entities) || Object.keys(entities).length === 0)
    return fail('entities', `must name at least one of ${entityNames.join(', ')}`);
  const mappings = Object.entries(entities).map(([name, given]) => {
    const where = `entities.${name}`;
    if (!isEntity(name)) return fail(where, `is not an entity: the entities are ${entityNames.join(', ')}`);
    return [name, readEntity(name, where, given, fail)] as const;
  });
  return new Map(mappings);
}

function readYaml(yaml: string, path: string): unknown {
  try {
    return parse(yaml, { logLevel: 'error', merge: true });
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n');
    throw new SourceError(`${path} is not valid YAML: ${reason.replace(/:$/, '')}`);
  }
}

type Fail = (where: string, what: string) => never;

function readEntity(entity: Entity, where: string, given: unknown, fail: Fail): EntityMapping {
  if (!isFields(given)) return fail(where, 'must be an object with query and key, or fields');
  const { query, key, fields, ...others } = given;
  for (const name of Object.keys(others))
    fail(where, `has an unknown setting ${JSON.stringify(name)}: the settings are query, key and fields`);
  if (query !== undefined && (typeof query !== 'string' || query.trim() === ''))
    return fail(`${where}.query`, 'must be a SELECT');
  const columns = typeof key === 'string' ? [key] : key;
  if (columns !== undefined && !isKey(columns))
    return fail(`${where}.key`, 'must be a list of different column names');
  return {
    query,
    key: columns,
    fields: fields === undefined ? undefined : readFields(entity, `${where}.fields`, fields, fail),
  };
}

function isKey(columns: unknown): columns is readonly string[] {
  if (!Array.isArray(columns) || columns.length === 0 || new Set(columns).size < columns.length) return false;
  return columns.every((column) => typeof column === 'string' && column !== '');
}

function readFields(entity: Entity, where: string, given: unknown, fail: Fail): ReadonlyMap<string, string> {
  if (!isFields(given)) return fail(where, 'must map record fields to columns or JSON pointers');
  const fields = new Map<string, string>();
  for (const [field, place] of Object.entries(given)) {
    if (!shapes[entity].fields.has(field)) return fail(where, `names an ${unknownIn(shapes[entity], field)}`);
    if (typeof place !== 'string' || place === '')
      return fail(`${where}.${field}`, 'must be a column name or a JSON pointer');
    const [parent = field] = field.split('.');
    if (parent !== field && Object.hasOwn(given, parent))
      return fail(where, `gives ${parent} both whole and by its parts`);
    fields.set(field, place);
  }
  const missing = missingField(entity, [...fields.keys()]);
  return missing === undefined ? fields : fail(where, `lacks ${missing}`);
}
