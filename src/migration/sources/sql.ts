import type { Ordered } from './paging.ts';

/** How a dialect quotes a name. */
export type Quote = (name: string) => string;

/** The query's column, quoted, as a column of the subquery `source`. */
export function columnOf(query: Ordered, index: number, quote: Quote): string {
  return `source.${quote(query.columns[index]?.name ?? '')}`;
}

/** The query as a subquery; its own line end keeps a comment in it from reaching further. */
export function from(select: string): string {
  return `FROM (${select}\n) AS source`;
}

/** Holds where any key column is null. */
export function anyNull(query: Ordered, quote: Quote): string {
  return query.key.map((index) => `${columnOf(query, index, quote)} IS NULL`).join(' OR ');
}

/** The order of the query's rows. */
export function orderBy(query: Ordered, quote: Quote): string {
  return ` ORDER BY ${query.key.map((index) => columnOf(query, index, quote)).join(', ')}`;
}

/** Leaves out rows that surely did not change since the query's `since`, where the column's type can tell. */
export function changedSince(query: Ordered, quote: Quote): string | undefined {
  if (query.since === undefined) return undefined;
  const name = columnOf(query, query.since.column, quote);
  const condition = query.columns[query.since.column]?.newer?.(name, query.since.time);
  return condition === undefined ? undefined : `(${condition} OR ${name} IS NULL)`;
}

/** A WHERE of the conditions that are given. */
export function where(...conditions: readonly (string | undefined)[]): string {
  const given = conditions.filter((condition) => condition !== undefined);
  return given.length === 0 ? '' : ` WHERE ${given.join(' AND ')}`;
}
