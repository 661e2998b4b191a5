import { printable } from '../../../lib/system/terminal.ts';
import { createSeen } from '../../../lib/bounded-memory/seen.ts';
import { missingField } from '../../records/parse.ts';
import { shapes, type Entity } from '../../records/records.ts';
import { hashApiKey } from '../../../redis/keys.ts';
import { createBatchBuilder } from '../batches.ts';
import { columnsOf, createRowReader, indexOfColumn, widthOf, type Cell, type Columns } from '../columns.ts';
import type { EntityMapping, Mapping } from '../mapping.ts';
import { createSource, SourceError, type ReadRows, type Source } from '../source.ts';
import { fromQuery, jsonText, type Column, type Database } from './database.ts';
import { plainSelect } from './statement.ts';
import type { DatabaseUrl, Dialect } from '../database-urls.ts';

/** Reads entities through a mapping's queries, each as one stream, all from one snapshot. */
export async function openTables(
  { dialect, shown }: DatabaseUrl,
  database: Database,
  mapping: Mapping,
  signal?: AbortSignal,
): Promise<Source> {
  const readers = new Map<Entity, ReadRows>();
  let mayLag: boolean;
  // A query waits for as long as somebody locks its tables.
  const stop = (): unknown => database.close();
  signal?.addEventListener('abort', stop);
  try {
    for (const [entity, own] of mapping) readers.set(entity, await openTable(database, dialect, entity, own));
    mayLag = await database.mayLag();
  } catch (error) {
    await database.close();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
  }
  // The database knows only its own transactions, and what lags may still lack older ones.
  const settledUntil = mayLag ? 0 : database.settledUntil;
  const { close } = database;
  return createSource(readers, { name: shown, ignored: [], settledUntil, mayLag, isReadWhole: false, close });
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
  const lowersNames = dialect === 'postgresql';
  const keyCells = key.map((name) => indexOfColumn(names, name, `${where}.key: the query`, lowersNames));
  const fields = columnsOf(
    { entity, names, what: 'the query', where: inQuery, others: key, lowersNames },
    mapping.fields,
  );
  checkTypes(columns, fields, inQuery);
  const readRow = createRowReader(fields);
  const readJson = createJsonReader(entity, columns, fields);
  const keyOf = createKeyReader(key, keyCells, fields, where);
  const keyFields = keyCells.flatMap((at) => fields[at] ?? []);
  // The fields that every record needs contain its identity.
  const isKeyOfIdentity = missingField(entity, keyFields) === undefined;
  const updated = columns[fields.indexOf('updatedAt')];

  return async function* (options) {
    const part = changedSince(select, updated, options.since, database.quote);
    const total = await database.estimate(part, inQuery);
    // Keys that contain the identity repeat only where it does, and the reader looks for that as well.
    const seen = isKeyOfIdentity && options.mayRepeat !== undefined ? undefined : createSeen();
    let isRepeated = false;
    const batch = createBatchBuilder(entity, options, (row: Key) => `${entity} row ${show(row)}`);
    let read = 0;
    for await (const page of stream(part)) {
      for (const cells of page) {
        const fault = readJson(cells);
        const row = keyOf(cells);
        if (seen?.add('', row.length === 1 ? (row[0] ?? '') : JSON.stringify(row)) === true)
          isRepeated = true;
        read += 1;
        batch.add(readRow(cells), widthOf(cells), row, fault);
        if (batch.isFull)
          yield batch.cut(total === undefined ? 0 : Math.min(0.99, read / Math.max(1, total)));
      }
    }
    const warned = await database.warning?.(inQuery);
    const warning = `the database warns (${warned}): check that the query changes and loses no value`;
    yield { ...batch.cut(1), warnings: warned === undefined ? [] : [warning] };
    if (seen === undefined ? options.mayRepeat?.() : isRepeated)
      await requireUnique(database, key, part, where);
  };
}

/** Throws a SourceError that shows a key which several rows of a query have, if there is one. */
async function requireUnique(database: Database, key: Key, select: string, where: string): Promise<void> {
  const list = key.map(database.exact).join(', ');
  const repeated = await database.first(
    `SELECT ${list} ${fromQuery(select)} GROUP BY ${list} HAVING COUNT(*) > 1 LIMIT 1`,
    `${where}.query`,
  );
  if (repeated === undefined) return;
  throw new SourceError(
    `${where}.key: (${key.join(', ')}) is not unique, ${show(repeated)} comes more than once: add a column`,
  );
}

/** Makes text of a row's JSON values; gives what is wrong with the row if that would change one. */
function createJsonReader(entity: Entity, columns: readonly Column[], fields: Columns) {
  const { fields: known } = shapes[entity];
  const jsonCells = columns.flatMap(({ isJson }, index) => (isJson === true ? [index] : []));
  return (cells: Cell[]): string | undefined => {
    let fault: string | undefined;
    for (const index of jsonCells) {
      const json = cells[index];
      if (json == null) continue;
      cells[index] = jsonText(json);
      const field = fields[index];
      const isText = field !== undefined && known.get(field)?.shape === undefined;
      if (isText && /^\s*[[{]/.test(json)) fault = `${field} is a JSON object or array, not text`;
    }
    return fault;
  };
}

/** Reads the key of a row, whose parts are in these cells. */
function createKeyReader(key: Key, keyCells: readonly number[], fields: Columns, where: string) {
  const [apiKey, sha256] = [fields.indexOf('apiKey'), fields.indexOf('apiKeySha256')];
  return (cells: readonly Cell[]): Key => {
    const own: string[] = [];
    for (const index of keyCells) {
      const cell = cells[index];
      if (cell == null) {
        throw new SourceError(
          `${where}.key: (${key.join(', ')}) is null in a row: choose columns that are never null`,
        );
      }
      if (holdsApiKey(cell, cells[apiKey], cells[sha256])) {
        throw new SourceError(
          `${where}.key holds API keys, and reports show a row's key: identify the rows by another column`,
        );
      }
      own.push(cell);
    }
    return own;
  };
}

/** A shorter API key may be part of a text by chance. */
const leastLength = 8;

/** Whether a text, or bytes in hexadecimal, hold the API key of their row, of which there may only be the hash. */
function holdsApiKey(cell: string, apiKey: Cell | undefined, sha256: Cell | undefined): boolean {
  if (!apiKey && !sha256) return false;
  const decoded = Buffer.from(cell.replace(/^[\\0]x/, ''), 'hex').toString();
  const texts = [cell, decoded].filter((text) => text !== '');
  return texts.some(
    (text) =>
      (apiKey && (text === apiKey || (apiKey.length >= leastLength && text.includes(apiKey)))) ||
      sha256?.toLowerCase().endsWith(hashApiKey(text)),
  );
}

/** Refuses columns whose values would not be what their fields need. */
function checkTypes(columns: readonly Column[], fields: Columns, where: string): void {
  for (const [index, { name, notInstant, notText }] of columns.entries()) {
    const field = fields[index];
    if (notInstant !== undefined && (field === 'updatedAt' || field === 'expiresAt'))
      throw new SourceError(`${where}: ${name} ${notInstant}`);
    if (notText !== undefined && field !== undefined && field !== 'apiKeySha256')
      throw new SourceError(`${where}: ${name} holds ${notText}`);
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

/** A key for people. */
function show(key: readonly Cell[]): string {
  return `(${printable(key.join(', '))})`;
}
