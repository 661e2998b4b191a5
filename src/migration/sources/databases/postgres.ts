import { Client, DatabaseError, escapeIdentifier, types } from 'pg';
import type { CustomTypesConfig, QueryArrayResult } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { Cell } from '../columns.ts';
import { SourceUnavailableError, type SourceError } from '../source.ts';
import { wholeLines } from '../lines.ts';
import {
  connectionError,
  fromQuery,
  probeAfter,
  queryError,
  withoutPadding,
  type Column,
  type Database,
} from './database.ts';
import type { DatabaseUrl } from '../database-urls.ts';

const builtins: Readonly<Record<keyof typeof types.builtins, number>> = types.builtins;
const numbers = new Set([builtins.INT4, builtins.INT8, builtins.NUMERIC, builtins.FLOAT8]);

// Every value crosses as the text PostgreSQL writes, so no precision is ever lost.
const textTypes: CustomTypesConfig = { getTypeParser: () => (text: string) => text };

interface PostgresColumn extends Column {
  /** Converts the text that PostgreSQL writes into a cell, if they differ. */
  readonly read?: (text: string) => string;
}

const sessionSettings = [
  'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY',
  "SET LOCAL TIME ZONE 'UTC'",
  "SET LOCAL DateStyle = 'ISO'",
  "SET LOCAL bytea_output = 'hex'",
  'SET LOCAL extra_float_digits = 3',
  // Those of them that the version has.
  `SELECT set_config(name, '0', true) FROM pg_settings
    WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`,
  // A query from which a row policy would hide rows is an error.
  'SET LOCAL row_security = off',
  // So that reading a table twice gives the same order.
  'SET LOCAL synchronize_seqscans = off',
];

// The tables of this database that another server sends. A subscription may have none; one that is disabled, as by its
// own disable_on_error, leaves its tables out of date.
const subscribedTables = 'SELECT srrelid FROM pg_subscription_rel';

// Whether the server replays or subscribes to what another one writes.
const isCopy = `pg_is_in_recovery() OR EXISTS (${subscribedTables})`;

// When the oldest transaction that is still open began: what it has written is not in a snapshot taken now. A
// transaction whose session may not be looked at (that takes pg_read_all_stats), one that is prepared, or one that
// runs on the primary of this replica, or where this database subscribes, may have begun at any time.
const settledQuery = `
  SELECT CASE
    WHEN ${isCopy}
      OR EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database())
      OR bool_or(coalesce(state, 'disabled') = 'disabled' AND EXISTS (
        SELECT FROM pg_locks WHERE pg_locks.pid = activity.pid AND locktype = 'virtualxid'))
    THEN 0
    ELSE floor(extract(epoch FROM least(statement_timestamp(), min(xact_start))) * 1000) END
  FROM pg_stat_activity AS activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type IS DISTINCT FROM 'autovacuum worker'`;

// What the session has locked in this database, so all tables that the queries described so far read.
const ownLocks = `
  pg_locks.pid = pg_backend_pid() AND locktype = 'relation'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

// Whether any of them is sent by another server, itself or the table that it is a partition of, or is a materialized
// view (as old as its last refresh) or a foreign table (only its server knows the transactions there, and may lag).
const lagQuery = `
  WITH RECURSIVE tables (id) AS (
    SELECT relation FROM pg_locks WHERE ${ownLocks}
    UNION SELECT inhparent FROM pg_inherits JOIN tables ON inhrelid = id)
  SELECT count(*) FROM tables LEFT JOIN pg_class ON oid = id
  WHERE relkind IN ('m', 'f') OR id IN (${subscribedTables})`;

// A table that is read and was truncated, rewritten or made anew after the snapshot, which would find it empty. From now
// on the session's lock keeps such changes away.
const replacedQuery = `
  SELECT relation::regclass FROM pg_locks LEFT JOIN pg_class ON oid = relation
  WHERE ${ownLocks}
    AND (oid IS NULL OR (relfilenode <> 0 AND relfilenode <> pg_relation_filenode(oid))) LIMIT 1`;

// Arrays, composites and the pseudo-type of rows, whose text would be a value such as {a,b} or (a,b).
const multipleTypesQuery = "SELECT oid FROM pg_type WHERE typcategory IN ('A', 'C', 'P')";
const severalValues =
  'several values, not text: write one of them, such as (…)[1], or to_json(…) for a nested object';

/** Bytes that are read ahead. */
const pageBytes = 64 * 1024;

/** Connects to PostgreSQL, inside one REPEATABLE READ snapshot that lasts until close. */
export async function openPostgres(address: DatabaseUrl, signal?: AbortSignal): Promise<Database> {
  const client = createClient(address);
  const disconnect = (): unknown => client.connection.stream.destroy();
  signal?.addEventListener('abort', disconnect);
  const { settledUntil, isReplica } = await connect(client, address).finally(() =>
    signal?.removeEventListener('abort', disconnect),
  );
  const run = async (text: string, where: string): Promise<QueryArrayResult<Cell[]>> => {
    try {
      return await client.query<Cell[]>({ text, rowMode: 'array' });
    } catch (error) {
      throw explain(error, address, where);
    }
  };

  const stream = async function* (select: string, where: string, columns: readonly PostgresColumn[]) {
    const copy = client.query(copyTo(`COPY (${select}\n) TO STDOUT`, { highWaterMark: pageBytes }));
    try {
      for await (const lines of wholeLines(copy)) yield readPage(lines, columns);
    } catch (error) {
      throw explain(error, address, where);
    }
  };

  return {
    settledUntil,
    mayLag: async () => isReplica || Number((await run(lagQuery, 'tables')).rows[0]?.[0]) > 0,
    quote: escapeIdentifier,
    exact: (name) => `${escapeIdentifier(name)}::text COLLATE "C"`,
    describe: async (select, where) => {
      const { fields } = await run(`SELECT * ${fromQuery(select)} LIMIT 0`, where);
      const [replaced] = (await run(replacedQuery, where)).rows;
      if (replaced !== undefined) {
        throw new SourceUnavailableError(
          `${where}: ${replaced[0]} was truncated, rewritten or made anew while it was opened: run the same command again`,
        );
      }
      const ids = fields.map(({ dataTypeID }) => dataTypeID);
      const { rows } = await run(`${multipleTypesQuery} AND oid IN (${ids.join()})`, where);
      const multiple = new Set(rows.flat());
      const columns = fields.map(({ name, dataTypeID }) =>
        multiple.has(String(dataTypeID))
          ? { name, notText: severalValues }
          : describeColumn(name, dataTypeID),
      );
      return { columns, stream: (part) => stream(part, where, columns) };
    },
    estimate: async (select, where) => {
      const { rows } = await run(`EXPLAIN (FORMAT JSON) ${select}`, where);
      const [plan] = JSON.parse(rows[0]?.[0] ?? '[]') as { Plan: { 'Plan Rows': number } }[];
      return plan?.Plan['Plan Rows'];
    },
    first: async (select, where) => (await run(select, where)).rows[0],
    // Without waiting for the rest of a result that is being read.
    close: async () => await client.end(),
  };
}

async function connect(client: Client, address: DatabaseUrl) {
  const ask = async (text: string): Promise<number> => {
    const { rows } = await client.query<Cell[]>({ text, rowMode: 'array' });
    return Number(rows[0]?.[0] ?? 0);
  };
  // A lost connection fails the query that waits for it; without a listener the event would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    const settledUntil = await ask(settledQuery).catch(() => 0);
    // Before the snapshot: it may be promoted later.
    const isReplica = (await ask('SELECT pg_is_in_recovery()::int')) === 1;
    // So that the query of a reader that is gone does not run on; not every version and system can tell.
    await client.query("SET client_connection_check_interval = '5s'").catch(() => {});
    await client.query(sessionSettings.join(';'));
    return { settledUntil, isReplica };
  } catch (error) {
    await client.end().catch(() => {});
    throw unreachable(error, address);
  }
}

function createClient(address: DatabaseUrl): Client {
  const url = new URL(address.url);
  // pg takes the other modes for this one, but warns about it.
  if (
    !url.searchParams.has('uselibpqcompat') &&
    /^(?:require|verify-ca)$/.test(url.searchParams.get('sslmode') ?? '')
  )
    url.searchParams.set('sslmode', 'verify-full');
  // Well-known authorities, here those that Node.js knows; pg would read a file of this name.
  if (url.searchParams.get('sslrootcert') === 'system') {
    url.searchParams.delete('sslrootcert');
    url.searchParams.set('sslmode', 'verify-full');
  }
  // pg takes the word for a wish for TLS.
  if (url.searchParams.get('ssl') === 'false') url.searchParams.set('ssl', '0');
  try {
    return new Client({
      connectionString: url.href,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: probeAfter,
      application_name: 'profile-bridge-migrate',
      enableChannelBinding: url.searchParams.get('channel_binding') === 'require',
      types: textTypes,
    });
  } catch (error) {
    // The files of certificates are read at once.
    throw connectionError('encryption', address, codeOf(error));
  }
}

/** Rows in the text format of COPY: a line for each, tabs between its cells. */
function readPage(lines: Buffer, columns: readonly PostgresColumn[]): Cell[][] {
  const text = lines.toString();
  const isRead = columns.some(({ read }) => read !== undefined);
  const page: Cell[][] = [];
  for (let from = 0; from < text.length;) {
    const to = text.indexOf('\n', from);
    const line = text.slice(from, to);
    const cells = line.split('\t');
    page.push(isRead || line.includes('\\') ? cells.map((cell, at) => readCell(cell, columns[at])) : cells);
    from = to + 1;
  }
  return page;
}

function readCell(cell: string, column: PostgresColumn | undefined): Cell {
  if (cell === '\\N') return null;
  const value = cell.includes('\\') ? cell.replaceAll(/\\(.)/g, unescape) : cell;
  return column?.read === undefined ? value : column.read(value);
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

function unescape(_: string, letter: string): string {
  return escapes[letter] ?? letter;
}

function describeColumn(name: string, type: number): PostgresColumn {
  if (type === builtins.BPCHAR) return { name, read: withoutPadding };
  if (type === builtins.JSON || type === builtins.JSONB) return { name, isJson: true };
  if (type === builtins.BYTEA) {
    const notText = "bytes, not text: write it as convert_from(…, 'UTF8'), or encode(…, 'hex')";
    return { name, notText, read: (text) => text.slice(2) };
  }
  if (type === builtins.TIMESTAMP || type === builtins.DATE) {
    const notInstant = "is a time without a zone: write it as (… AT TIME ZONE 'UTC'), with the zone it is in";
    return { name, notInstant };
  }
  if (type === builtins.TIMESTAMPTZ)
    return { name, newer: (column, time) => `${column} >= to_timestamp(${time / 1000})` };
  if (numbers.has(type)) return { name, newer: (column, time) => `${column} >= ${time}` };
  return { name };
}

const remedies = [
  ['row-level security', ': read as a user with BYPASSRLS, or as the owner of the table'],
  ['conflict with recovery', ': read from the primary, or set hot_standby_feedback on the replica'],
] as const;

function explain(error: unknown, address: DatabaseUrl, where: string): SourceError {
  if (error instanceof DatabaseError && !/^(?:08|57)/.test(error.code ?? '')) {
    const { hint } = error;
    // A cast that fails (class 22) quotes the value, in the quotation marks of the server's language.
    const isSecret = where.startsWith('entities.api-keys') && error.code?.startsWith('22') === true;
    const message = isSecret ? error.message.replace(/\p{Quotation_Mark}[^]*/u, '…') : error.message;
    const [, remedy = ''] = remedies.find(([reason]) => message.includes(reason)) ?? [];
    return queryError(where, `${message}${remedy}${hint === undefined ? '' : ` (${hint})`}`);
  }
  return connectionError('lost', address, codeOf(error));
}

function unreachable(error: unknown, address: DatabaseUrl): SourceError {
  const code = codeOf(error);
  // This is what pg reports if a password is required and missing.
  if (code === '28P01' || /password must be a string/.test(String(error)))
    return connectionError('password', address, code);
  if (code === '3D000') return connectionError('database', address, code);
  if (error instanceof DatabaseError) return connectionError('refused', address, error.message);
  return connectionError('unreachable', address, code);
}

function codeOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string') return code;
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  if (first !== undefined) return codeOf(first);
  return /timeout|SSL/i.exec(String(message))?.[0] ?? 'connection closed';
}
