import { printable } from '../../../lib/system/terminal.ts';
import { createSeen } from '../../analysis/seen.ts';
import { entityNames } from '../../records/records.ts';
import type { Entity } from '../../records/records.ts';
import type { Fields } from '../../records/shapes.ts';
import { createBatchBuilder } from '../batches.ts';
import { columnsOf, indexOfColumn } from '../columns.ts';
import type { EntityMapping, Mapping } from '../mapping.ts';
import { createSource, SourceError } from '../source.ts';
import type { ReadRows, Source } from '../source.ts';
import { fromQuery, type Cell, type Column, type Database } from './database.ts';
import { plainSelect } from './statement.ts';
import type { DatabaseUrl } from './urls.ts';

/** Reads entities through a mapping's queries, each as one stream, all from one snapshot. */
export async function openTables<C extends Column>(
  address: DatabaseUrl,
  database: Database<C>,
  mapping: Mapping,
): Promise<Source> {
  const readers = new Map<Entity, ReadRows>();
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
  const { settledUntil, close } = database;
  return createSource(readers, { name: address.shown, ignored: [], settledUntil, close });
}

/** An entity's query, checked. */
interface Table<C extends Column> {
  readonly entity: Entity;
  readonly select: string;
  readonly columns: readonly C[];
  /** Indices of the columns that identify a row. */
  readonly key: readonly number[];
  /** The record field each column gives, if any. */
  readonly fields: readonly (string | undefined)[];
  /** Names the table in errors. */
  readonly where: string;
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

type Key = readonly string[];

/**
 * Streams a query's rows. The first reading checks that the key identifies a row: if the hashes of two keys are equal,
 * the database is asked for a key that occurs more than once.
 */
function createTableReader<C extends Column>(database: Database<C>, table: Table<C>): ReadRows {
  const { entity, columns, fields, where } = table;
  const query = `${where}.query`;
  const toRow = createRowMaker(fields);
  const apiKey = fields.indexOf('apiKey');
  const keyColumns = table.key.map((index) => columns[index]?.name ?? '');
  const names = `(${keyColumns.join(', ')})`;
  /** Rows of the queries that were read to their end. */
  const counted = new Map<string, number>();

  const keyOf = (cells: readonly Cell[]): Key =>
    table.key.map((index) => {
      const cell = cells[index];
      if (cell == null) {
        throw new SourceError(`${where}.key: ${names} is null in a row: choose columns that are never null`);
      }
      if (apiKey !== -1 && cell === cells[apiKey]) {
        throw new SourceError(
          `${where}.key holds API keys, and reports show a row's key: identify the rows by another column`,
        );
      }
      return cell;
    });

  return async function* (options) {
    const select = selectSince(database, table, options.since);
    const total = counted.get(select) ?? (await database.estimate(select, query));
    const seen = counted.has(select) ? undefined : createSeen();
    let mayRepeat = false;
    const batch = createBatchBuilder<Key>(entity, options, (key) => `${entity} row ${show(key)}`);
    let read = 0;
    for await (const page of database.stream(select, query, columns)) {
      for (const cells of page) {
        const key = keyOf(cells);
        if (seen?.add('', key.length === 1 ? (key[0] ?? '') : JSON.stringify(key)) === true) mayRepeat = true;
        read += 1;
        const { raw, bytes } = toRow(cells);
        batch.add(raw, bytes, key);
        if (batch.isFull) yield batch.cut(Math.min(0.99, read / Math.max(1, total)));
      }
    }
    const repeated = mayRepeat ? await database.findRepeated(select, query, keyColumns) : undefined;
    if (repeated !== undefined) {
      throw new SourceError(
        `${where}.key: ${names} is not unique, ${show(repeated)} comes more than once: add a column`,
      );
    }
    counted.set(select, read);
    yield batch.cut(1);
  };
}

/** The query restricted to rows that changed since then, if the type of updatedAt allows it. */
function selectSince<C extends Column>(
  { quote }: Database<C>,
  { select, columns, fields }: Table<C>,
  since: number | undefined,
): string {
  const updated = columns[fields.indexOf('updatedAt')];
  if (since === undefined || updated?.newer === undefined) return select;
  const name = `source.${quote(updated.name)}`;
  return `SELECT * ${fromQuery(select)} WHERE ${updated.newer(name, since)} OR ${name} IS NULL`;
}

/** Makes a row of cells. Fields of nested objects come nested, unless a column gives the whole object as well. */
function createRowMaker(fields: readonly (string | undefined)[]) {
  const columns: { index: number; field: string; parent?: string | undefined }[] = [];
  for (const [index, given] of fields.entries()) {
    const [parent, field] = given?.split('.') ?? [];
    if (given === undefined) continue;
    if (field === undefined || fields.includes(parent)) columns.push({ index, field: given });
    else columns.push({ index, field, parent });
  }
  return (cells: readonly Cell[]): { raw: Fields; bytes: number } => {
    const raw: Fields = {};
    let bytes = 0;
    for (const { index, field, parent } of columns) {
      const cell = cells[index];
      if (typeof cell !== 'string') continue;
      const place = parent === undefined ? raw : ((raw[parent] ??= {}) as Fields);
      place[field] = cell;
      bytes += cell.length;
    }
    return { raw, bytes };
  };
}

/** A key for people. */
function show(key: Key): string {
  return `(${key.map(printable).join(', ')})`;
}
