import type { EntityMapping, Mapping } from '../mapping.ts';
import { entityNames } from '../../records/records.ts';
import type { Entity } from '../../records/records.ts';
import { columnsOf, indexOfColumn } from '../columns.ts';
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
  const key = mapping.key.map((name) => indexOfColumn(names, name, `${where}.key: the query`));
  const given = { entity, names, what: 'the query', where: `${where}.query`, others: mapping.key };
  const fields = columnsOf(given, mapping.fields);
  for (const [index, { name, noMoment, bytesToText }] of columns.entries()) {
    const field = fields[index];
    if (noMoment !== undefined && (field === 'updatedAt' || field === 'expiresAt'))
      throw new SourceError(`${where}.query: ${name} ${noMoment}`);
    if (bytesToText !== undefined && field !== undefined && field !== 'apiKeySha256')
      throw new SourceError(`${where}.query: ${name} holds bytes, not text: write it as ${bytesToText}`);
  }
  return { entity, select, columns, key, fields, where };
}
