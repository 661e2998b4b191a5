import { counted } from '../../lib/numbers.ts';
import { printable } from '../../lib/terminal.ts';
import type { Entity } from '../records/records.ts';
import { usualBatchSize, isOf, SourceError } from './source.ts';
import type { Batch, ReadOptions, Row } from './source.ts';

/** A column of a query's result. */
export interface Column {
  readonly name: string;
  /** Why the column cannot order rows exactly, where it cannot; completes a sentence. */
  readonly noKey?: string;
  /** Why the column tells no moment, though it seems to; completes a sentence. */
  readonly noMoment?: string;
  /** What the column's text needs behind it to tell a moment. */
  readonly zone?: string;
  /** SQL that holds where the column, under the name given, tells this moment (epoch ms) or a later one. */
  readonly newer?: (column: string, time: number) => string;
}

/** A value as exact text; bytes as hexadecimal. */
type Cell = string | null;

/** A query whose rows are ordered by its key columns. */
export interface Ordered<C extends Column = Column> {
  readonly select: string;
  /** Names the query in errors. */
  readonly where: string;
  readonly columns: readonly C[];
  /** Indices of the key columns. */
  readonly key: readonly number[];
  /** Index of the column that tells when a row last changed, and from when on rows are wanted (epoch ms). */
  readonly since?: { readonly column: number; readonly time: number } | undefined;
}

/** One page: rows, each with whether its key equals `from` by the database's own comparison. */
type Page = readonly { readonly cells: readonly Cell[]; readonly same: boolean }[];

/** A connection inside one read-only snapshot. Failures are SourceErrors. */
export interface Database<C extends Column = Column> {
  describe: (select: string, where: string) => Promise<readonly C[]>;
  /** How many rows there are from the key on (all without one), and how many of all have a null in their key. */
  count: (query: Ordered<C>, from?: readonly string[]) => Promise<{ rows: number; nulls: number }>;
  /** The rows from the key on, that key included (all without one), in order. */
  page: (query: Ordered<C>, limit: number, from?: readonly string[]) => Promise<Page>;
  close: () => Promise<void>;
}

/** Rows fetched by one query: enough that a query without a fitting index is not run too often. */
const pageSize = 5000;

/** An entity's query, checked. */
export interface Table<C extends Column> {
  readonly query: Ordered<C>;
  /** The record field each column gives, if any. */
  readonly fields: readonly (string | undefined)[];
  readonly where: string;
}

/** Streams a query's rows page by page along its key (keyset paging), fetching the next page while one is used. */
export async function* readTable<C extends Column>(
  database: Database<C>,
  entity: Entity,
  { query: whole, fields, where }: Table<C>,
  options: ReadOptions,
): AsyncGenerator<Batch> {
  const size = options.size ?? usualBatchSize;
  const updated = fields.indexOf('updatedAt');
  const since =
    options.since === undefined || updated === -1 ? undefined : { column: updated, time: options.since };
  const query = { ...whole, since };
  const names = `(${query.key.map((index) => query.columns[index]?.name ?? '').join(', ')})`;

  let from = options.after === undefined ? undefined : (JSON.parse(options.after) as string[]);
  const total = await database.count(query, from);
  if (total.nulls > 0) {
    throw new SourceError(
      `${where}.key: ${names} is null in ${counted(total.nulls, 'row')}: choose columns that are never null`,
    );
  }
  let read = 0;
  let next: Promise<Page> | undefined = database.page(query, pageSize, from);
  next.catch(() => {});
  while (next !== undefined) {
    const page: Page = await next;
    const keys = page.map(({ cells }) => query.key.map((index) => cells[index] ?? ''));
    refuseShownApiKeys(keys, page, fields.indexOf('apiKey'), where);
    refuseDoubles(
      keys,
      page,
      (key) => `${where}.key: ${names} is not unique, ${show(key)} comes more than once: add a column`,
    );
    const last = keys.at(-1);
    next = page.length < pageSize || last === undefined ? undefined : database.page(query, pageSize, last);
    next?.catch(() => {});

    const skip = from !== undefined && keys[0] !== undefined && equal(keys[0], from) ? 1 : 0;
    for (let start = skip; start < page.length; start += size) {
      const rows: Row[] = [];
      const own: (readonly string[])[] = [];
      const stop = Math.min(start + size, page.length);
      for (let index = start; index < stop; index += 1) {
        const key = keys[index] ?? [];
        const raw = toRaw(page[index]?.cells ?? [], query.columns, fields);
        if (!isOf(options.organizationId, raw)) continue;
        rows.push({ raw });
        own.push(key);
      }
      read += stop - start;
      yield {
        rows,
        where: (index) => `${entity} row ${show(own[index] ?? [])}`,
        end: JSON.stringify(keys[stop - 1]),
        progress: Math.min(1, read / Math.max(1, total.rows)),
      };
    }
    from = last ?? from;
  }
}

/** A key may hold API keys under another column's name; reports would show them. */
function refuseShownApiKeys(
  keys: readonly (readonly string[])[],
  page: Page,
  column: number,
  where: string,
): void {
  if (!page.some(({ cells }, index) => keys[index]?.includes(cells[column] ?? '\0'))) return;
  throw new SourceError(`${where}.key holds API keys, and reports show a row's key: order by another column`);
}

/**
 * Inside a page, two rows of one key stand side by side. Across pages the database itself tells which rows have the
 * key the last page ended with: by its collation these may be more than those that look alike.
 */
function refuseDoubles(
  keys: readonly (readonly string[])[],
  page: Page,
  message: (key: readonly string[]) => string,
): void {
  for (const [index, key] of keys.entries()) {
    const before = keys[index - 1];
    if (before === undefined) continue;
    const same = equal(before, key) || (page[index]?.same === true && page[index - 1]?.same === true);
    if (same) throw new SourceError(message(key));
  }
}

function equal(one: readonly string[], other: readonly string[]): boolean {
  return one.every((value, index) => value === other[index]);
}

function toRaw(
  cells: readonly Cell[],
  columns: readonly Column[],
  fields: readonly (string | undefined)[],
): Record<string, string> {
  const raw: Record<string, string> = {};
  for (const [index, field] of fields.entries()) {
    const cell = cells[index];
    if (field !== undefined && typeof cell === 'string') raw[field] = cell + (columns[index]?.zone ?? '');
  }
  return raw;
}

/** A key for people. */
function show(key: readonly string[]): string {
  return `(${key.map(printable).join(', ')})`;
}
