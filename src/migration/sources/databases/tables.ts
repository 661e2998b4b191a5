import type { EntityMapping, Mapping } from '../mapping.ts';
import { fieldNames, requiredFields, unknownField } from '../../records/parse.ts';
import { entityNames } from '../../records/records.ts';
import type { Entity } from '../../records/records.ts';
import { SourceError } from '../source.ts';
import type { Source } from '../source.ts';
import type { Column, Database } from './database.ts';
import { createTableReader, type Table, type TableReader } from './read-table.ts';
import { plainSelect } from './statement.ts';
import type { DatabaseUrl } from './urls.ts';

/** Reads entities through a mapping's queries, each as one stream, all from one snapshot. */
export async function openTables<C extends Column>(
  address: DatabaseUrl,
  database: Database<C>,
  mapping: Mapping,
): Promise<Source> {
  const readers = new Map<Entity, TableReader>();
  try {
    for (const entity of entityNames) {
      const own = mapping.get(entity);
      if (own === undefined) continue;
      const table = await openTable(address, database, entity, own);
      readers.set(entity, createTableReader(database, table));
    }
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    name: address.shown,
    entities: [...readers.keys()],
    ignored: [],
    settledUntil: database.settledUntil,
    read: (entity, options = {}) => {
      const reader = readers.get(entity);
      if (reader === undefined) {
        throw new SourceError(
          `the mapping names no ${entity}: add entities.${entity}, or leave ${entity} out`,
        );
      }
      return reader(options);
    },
    close: database.close,
  };
}

async function openTable<C extends Column>(
  address: DatabaseUrl,
  database: Database<C>,
  entity: Entity,
  mapping: EntityMapping,
): Promise<Table<C>> {
  const where = `entities.${entity}`;
  if (mapping.query === undefined)
    throw new SourceError(`${where}.query is missing: a database needs a SELECT`);
  if (mapping.key === undefined)
    throw new SourceError(`${where}.key is missing: name the columns that identify a row`);
  const select = plainSelect(mapping.query, address.dialect, `${where}.query`);
  const columns = await database.describe(select, `${where}.query`);
  const names = columns.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined)
    throw new SourceError(`${where}.query: the query gives the column ${JSON.stringify(twice)} twice`);
  const key = mapping.key.map((name) => keyColumn(columns, name, where));
  const fields =
    mapping.fields === undefined
      ? fieldsByName(entity, names, new Set(mapping.key), where)
      : fieldsByMapping(names, mapping.fields, where);
  for (const [index, { name, noMoment, bytesToText }] of columns.entries()) {
    const field = fields[index];
    if (noMoment !== undefined && (field === 'updatedAt' || field === 'expiresAt'))
      throw new SourceError(`${where}.query: ${name} ${noMoment}`);
    if (bytesToText !== undefined && field !== undefined && field !== 'apiKeySha256')
      throw new SourceError(`${where}.query: ${name} holds bytes, not text: write it as ${bytesToText}`);
  }
  return { entity, select, columns, key, fields, where };
}

function keyColumn(columns: readonly Column[], name: string, where: string): number {
  const index = columns.findIndex((column) => column.name === name);
  if (index === -1)
    throw new SourceError(`${where}.key: the query gives no column ${nearest(columns, name)}`);
  return index;
}

/** Quotes a column that is missing, with the spelling the query gives it in, where only the case differs. */
function nearest(columns: readonly { readonly name: string }[], name: string): string {
  const found = columns.find((column) => column.name.toLowerCase() === name.toLowerCase());
  return found === undefined
    ? JSON.stringify(name)
    : `${JSON.stringify(name)}, but ${JSON.stringify(found.name)}`;
}

function fieldsByName(
  entity: Entity,
  names: readonly string[],
  key: ReadonlySet<string>,
  where: string,
): readonly (string | undefined)[] {
  const known = new Set(fieldNames(entity));
  for (const name of names) {
    if (known.has(name) || key.has(name)) continue;
    const folded = [...known].some((field) => field.toLowerCase() === name);
    const remedy = folded ? '; PostgreSQL lowers names that are not in double quotes' : '';
    throw new SourceError(`${where}.query: the query gives an ${unknownField(entity, name)}${remedy}`);
  }
  for (const group of requiredFields(entity)) {
    if (group.some((field) => names.includes(field))) continue;
    throw new SourceError(`${where}.query: the query gives no column ${group.join(' or ')}`);
  }
  return names.map((name) => (known.has(name) ? name : undefined));
}

function fieldsByMapping(
  names: readonly string[],
  mapped: ReadonlyMap<string, string>,
  where: string,
): readonly (string | undefined)[] {
  const fields: (string | undefined)[] = names.map(() => undefined);
  for (const [field, column] of mapped) {
    const index = names.indexOf(column);
    if (index === -1) {
      const missing = nearest(
        names.map((name) => ({ name })),
        column,
      );
      throw new SourceError(`${where}.fields.${field}: the query gives no column ${missing}`);
    }
    if (fields[index] !== undefined) {
      throw new SourceError(`${where}.fields gives ${fields[index]} and ${field} the same column`);
    }
    fields[index] = field;
  }
  return fields;
}
