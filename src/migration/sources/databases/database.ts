import type { Cell } from '../columns.ts';
import { SourceError, SourceUnavailableError } from '../source.ts';
import type { DatabaseUrl } from '../database-urls.ts';

/** A column of a query's result. */
export interface Column {
  readonly name: string;
  /** What the column holds if it is not text, with the SQL that makes text of it; completes a sentence. */
  readonly notText?: string;
  /** Whether the column holds JSON, which is given as it is. */
  readonly isJson?: boolean;
  /** Why the column is not a point in time, though it looks like one; completes a sentence. */
  readonly notInstant?: string;
  /** SQL that is true if the column of this name is at or after a time (epoch ms). */
  readonly newer?: (column: string, time: number) => string;
}

/** A query as the server understands it. */
interface Query {
  readonly columns: readonly Column[];
  /**
   * Streams rows of the query or of a part of it, some at a time, with values as exact text (bytes as hexadecimal); one
   * stream at a time.
   */
  stream: (select: string) => AsyncIterable<Cell[][]>;
}

/** A connection inside one read-only snapshot. Failures are SourceErrors, which name a query by `where`. */
export interface Database {
  /** As Source.settledUntil, of tables that do not lag. */
  readonly settledUntil: number;
  /** As Source.mayLag, of the queries that were described. */
  mayLag: () => Promise<boolean>;
  quote: (name: string) => string;
  /** A column as an expression whose values are compared byte by byte. */
  exact: (name: string) => string;
  describe: (select: string, where: string) => Promise<Query>;
  /** The approximate number of rows of the query, without running it; undefined if the server does not say. */
  estimate: (select: string, where: string) => Promise<number | undefined>;
  /** The first row of the query, if there is one. */
  first: (select: string, where: string) => Promise<readonly Cell[] | undefined>;
  /** What the server warned of in the last stream, such as a value that it could not convert; quotes no value. */
  warning?: (where: string) => Promise<string | undefined>;
  close: () => Promise<void>;
}

/**
 * How long a connection is silent before it is probed, in ms: while a query sorts, a firewall may forget it, or the server
 * may lose its power, and neither says so.
 */
export const probeAfter = 60_000;

/** The query as a subquery named `source`; its own line end keeps a comment in it from reaching further. */
export function fromQuery(select: string): string {
  return `FROM (${select}\n) AS source`;
}

/** A JSON value as text: a string without its quotes, null as none. */
export function jsonText(json: string): string {
  // PostgreSQL keeps the white space around a json.
  const text = json.trim();
  if (text === 'null') return '';
  return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}

/** A CHAR(n) without its padding, which SQL does not count as part of the value. */
export function withoutPadding(text: string): string {
  return text.replace(/ +$/, '');
}

const connectionFailures = {
  lost: (url: string, code: string) => `lost the connection to ${url} (${code}): run the same command again`,
  unreachable: (url: string, code: string) =>
    `cannot reach ${url} (${code}): check the host and port, and that the server runs`,
  encryption: (url: string, code: string) =>
    `cannot connect to ${url} over TLS (${code}): check that the server offers it, its certificate, and the URL's parameters`,
  password: (url: string) =>
    `${url} refuses the user or password: check the user in the URL, and SOURCE_PASSWORD or SOURCE_PASSWORD_FILE`,
  passwordOrEncryption: (url: string) =>
    `${connectionFailures.password(url)}; if the server requires TLS, add ?sslmode=verify-full to the URL`,
  refused: (url: string, reason: string) =>
    `${url} refuses the connection (${reason.replaceAll(/\s+/g, ' ')}): correct this on the server, or in the URL, where ?sslmode=verify-full asks for TLS`,
  database: (url: string) => `${url}: there is no such database: check the URL's path`,
  databaseOrRights: (url: string) =>
    `${url}: there is no such database, or the user has no rights to it: check the URL's path and the user's rights`,
};

// How Node.js and the drivers call what can be wrong with TLS.
const encryptionCode = /SSL|TLS|CERT|SIGNATURE/;

/** The error for a connection that failed; `code` is how the driver or the server calls the reason. */
export function connectionError(
  failure: keyof typeof connectionFailures,
  { shown }: DatabaseUrl,
  code: string,
): SourceUnavailableError {
  const isEncryption = failure === 'unreachable' && encryptionCode.test(code);
  return new SourceUnavailableError(connectionFailures[isEncryption ? 'encryption' : failure](shown, code));
}

/** The error for a query that the server refuses, in one line. */
export function queryError(where: string, message: string): SourceError {
  return new SourceError(`${where}: ${message}`.replaceAll(/\s+/g, ' '));
}
