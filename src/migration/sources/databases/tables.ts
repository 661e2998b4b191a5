import { printable } from '../../../lib/system/terminal.ts';
import { createSeen } from '../../analysis/seen.ts';
import type { Entity } from '../../records/records.ts';
import type { Fields } from '../../records/shapes.ts';
import { createBatchBuilder } from '../batches.ts';
import { columnsOf, indexOfColumn, type Columns } from '../columns.ts';
import type { EntityMapping, Mapping } from '../mapping.ts';
import { createSource, SourceError } from '../source.ts';
import type { ReadRows, Source } from '../source.ts';
import { fromQuery, type Cell, type Column, type Database } from './database.ts';
import { plainSelect, type Dialect } from './statement.ts';
import type { DatabaseUrl } from './urls.ts';

/** Reads entities through a mapping's queries, each as one stream, all from one snapshot. */
export async function openTables(
  { dialect, shown }: DatabaseUrl,
  database: Database,
  mapping: Mapping,
): Promise<Source> {
  const readers = new Map<Entity, ReadRows>();
  try {
    for (const [entity, own] of mapping) readers.set(entity, await openTable(database, dialect, entity, own));
  } catch (error) {
    await database.close();
    throw error;
  }
  const { settledUntil, close } = database;
  return createSource(readers, { name: shown, ignored: [], settledUntil, close });
}

type Key = readonly string[];

/**
 * Checks an entity's query, and streams its rows. The key has to identify a row: if the hashes of two keys are equal, the
 * database is asked for a key that occurs more than once.
 */
async function openTable(
  database: Database,
  dialect: Dialect,
  entity: Entity,
  mapping: EntityMapping,
): Promise<ReadRows> {
  const where = `entities.${entity}`;
  if (mapping.query === undefined)
    throw new SourceError(`${where}.query is missing: a database needs a SELECT`);
  if (mapping.key === undefined)
    throw new SourceError(`${where}.key is missing: name the columns that identify a row`);
  const key = mapping.key;
  const inQuery = `${where}.query`;
  const select = plainSelect(mapping.query, dialect, inQuery);
  const { columns, stream } = await database.describe(select, inQuery);
  const names = columns.map(({ name }) => name);
  const keyCells = key.map((name) => indexOfColumn(names, name, `${where}.key: the query`));
  const fields = columnsOf({ entity, names, what: 'the query', where: inQuery, others: key }, mapping.fields);
  checkTypes(columns, fields, inQuery);
  const toRow = createRowMaker(fields);
  const apiKey = fields.indexOf('apiKey');
  const updated = columns[fields.indexOf('updatedAt')];

  const keyOf = (cells: readonly Cell[]): Key =>
    keyCells.map((index) => {
      const cell = cells[index];
      if (cell == null) {
        throw new SourceError(
          `${where}.key: (${key.join(', ')}) is null in a row: choose columns that are never null`,
        );
      }
      if (apiKey !== -1 && cell === cells[apiKey]) {
        throw new SourceError(
          `${where}.key holds API keys, and reports show a row's key: identify the rows by another column`,
        );
      }
      return cell;
    });

  const checkUnique = async (part: string): Promise<void> => {
    const list = key.map(database.exact).join(', ');
    const repeated = await database.first(
      `SELECT ${list} ${fromQuery(part)} GROUP BY ${list} HAVING COUNT(*) > 1 LIMIT 1`,
      inQuery,
    );
    if (repeated === undefined) return;
    throw new SourceError(
      `${where}.key: (${key.join(', ')}) is not unique, ${show(repeated)} comes more than once: add a column`,
    );
  };

  return async function* (options) {
    const part = changedSince(select, updated, options.since, database.quote);
    const total = await database.estimate(part, inQuery);
    const seen = createSeen();
    let mayRepeat = false;
    const batch = createBatchBuilder<Key>(entity, options, (row) => `${entity} row ${show(row)}`);
    let read = 0;
    for await (const page of stream(part)) {
      for (const cells of page) {
        const row = keyOf(cells);
        if (seen.add('', row.length === 1 ? (row[0] ?? '') : JSON.stringify(row))) mayRepeat = true;
        read += 1;
        const { raw, bytes } = toRow(cells);
        batch.add(raw, bytes, row);
        if (batch.isFull) yield batch.cut(Math.min(0.99, read / Math.max(1, total)));
      }
    }
    if (mayRepeat) await checkUnique(part);
    yield batch.cut(1);
  };
}

/** Refuses columns whose values would not be what their fields need. */
function checkTypes(columns: readonly Column[], fields: Columns, where: string): void {
  for (const [index, { name, noMoment, bytesToText }] of columns.entries()) {
    const field = fields[index];
    if (noMoment !== undefined && (field === 'updatedAt' || field === 'expiresAt'))
      throw new SourceError(`${where}: ${name} ${noMoment}`);
    if (bytesToText !== undefined && field !== undefined && field !== 'apiKeySha256')
      throw new SourceError(`${where}: ${name} holds bytes, not text: write it as ${bytesToText}`);
  }
}

/** The query restricted to rows that changed since then, if the type of updatedAt allows it. */
function changedSince(
  select: string,
  updated: Column | undefined,
  since: number | undefined,
  quote: Database['quote'],
): string {
  if (since === undefined || updated?.newer === undefined) return select;
  const name = `source.${quote(updated.name)}`;
  return `SELECT * ${fromQuery(select)} WHERE ${updated.newer(name, since)} OR ${name} IS NULL`;
}

/** Makes a row of cells. Fields of nested objects come nested, unless a column gives the whole object as well. */
function createRowMaker(fields: Columns) {
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
function show(key: readonly Cell[]): string {
  return `(${key.map((cell) => printable(cell ?? '')).join(', ')})`;
}
