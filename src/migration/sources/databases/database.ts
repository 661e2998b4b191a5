/** A value as exact text; bytes as hexadecimal. */
export type Cell = string | null;

/** A column of a query's result. */
export interface Column {
  readonly name: string;
  /** For a column of bytes: the SQL that makes text of it. */
  readonly bytesToText?: string;
  /** Why the column is not a point in time, though it looks like one; completes a sentence. */
  readonly noMoment?: string;
  /** SQL that is true where the column, by this name, is at or after a time (epoch ms). */
  readonly newer?: (column: string, time: number) => string;
}

/** A connection inside one read-only snapshot. Failures are SourceErrors, which name a query by `where`. */
export interface Database<C extends Column = Column> {
  /** As Source.settledUntil. */
  readonly settledUntil: number;
  quote: (name: string) => string;
  describe: (select: string, where: string) => Promise<readonly C[]>;
  /** About how many rows the query gives; without running it. */
  estimate: (select: string, where: string) => Promise<number>;
  /** Streams the query's rows, some at a time, one query at a time. */
  stream: (select: string, where: string, columns: readonly C[]) => AsyncIterable<Cell[][]>;
  /** A combination of values of these columns that more than one row has, byte by byte. */
  findRepeated: (
    select: string,
    where: string,
    columns: readonly string[],
  ) => Promise<readonly string[] | undefined>;
  close: () => Promise<void>;
}

/** The query as a subquery named `source`; its own line end keeps a comment in it from reaching further. */
export function fromQuery(select: string): string {
  return `FROM (${select}\n) AS source`;
}

/** A CHAR(n) without the blanks that fill it up: to SQL they are no part of the value. */
export function withoutPadding(text: string): string {
  return text.replace(/ +$/, '');
}

/** The query for `findRepeated`, with the columns as expressions that compare byte by byte. */
export function repeatedQuery(select: string, columns: readonly string[]): string {
  const list = columns.join(', ');
  return `SELECT ${list} ${fromQuery(select)} GROUP BY ${list} HAVING COUNT(*) > 1 LIMIT 1`;
}
