import type { Socket } from 'node:net';
import { createConnection, escapeId, type Connection, type FieldPacket, type SslOptions } from 'mysql2';
import type { Cell } from '../columns.ts';
import { SourceUnavailableError, type SourceError } from '../source.ts';
import {
  connectionError,
  fromQuery,
  probeAfter,
  queryError,
  withoutPadding,
  type Column,
  type Database,
} from './database.ts';
import { urlForms, type DatabaseUrl } from '../database-urls.ts';

const types = {
  numbers: [0, 1, 2, 3, 8, 9, 13, 246],
  timestamp: 7,
  date: 10,
  datetime: 12,
  bit: 16,
  json: 245,
  /** VARCHAR, BLOB and TEXT of all lengths, CHAR; with the binary character set they hold bytes. */
  strings: [15, 249, 250, 251, 252, 253, 254],
  char: 254,
};
const binaryCharset = 63;

// Whether the server is only read, as replicas are, or writes what other servers send.
const isCopy = `
  (@@GLOBAL.read_only NOT IN ('0', 'OFF') OR EXISTS (
    SELECT * FROM information_schema.processlist WHERE user = 'system user' AND command <> 'Daemon'))`;

// When a transaction began, in seconds. In the hour that is repeated when summer time ends, its local time has two
// meanings: the earlier one counts.
const startedAt = `
  (UNIX_TIMESTAMP(trx_started) - 3600 * (FROM_UNIXTIME(UNIX_TIMESTAMP(trx_started) - 3600) = trx_started))`;

// Writes of a transaction that is open when the snapshot is taken are not in it. Without the PROCESS privilege
// nothing says when the oldest one began, nor does the server know it of one without a session, which was prepared before
// a crash. A server that is only read, as replicas are, does not know the transactions of its primary, nor does one that
// writes what other servers send, as a replica or a member of a cluster.
const settledQuery = `
  SELECT IF(${isCopy} OR COALESCE(MAX(trx_mysql_thread_id = 0), 0), 0,
    FLOOR(1000 * LEAST(@@timestamp, COALESCE(MIN(${startedAt}), @@timestamp))))
  FROM information_schema.innodb_trx
  WHERE trx_is_read_only = 0 AND trx_mysql_thread_id <> CONNECTION_ID()`;

const sessionSettings = [
  // Reading may pause for as long as Redis is slow, and no limit of the server's may leave out rows.
  "SET NAMES utf8mb4, time_zone = '+00:00', sql_select_limit = 18446744073709551615, wait_timeout = 86400, net_write_timeout = 86400, " +
    "sql_mode = REPLACE(@@sql_mode, 'PAD_CHAR_TO_FULL_LENGTH', '')",
  'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ',
  'START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY',
];

// Limits that only MySQL or only MariaDB has: on a query's time, and on that between two queries of a transaction.
const ownLimits = [
  'max_execution_time',
  'max_statement_time',
  'idle_transaction_timeout',
  'idle_readonly_transaction_timeout',
];

/** A column, and how its bytes become text. */
interface MysqlColumn extends Column {
  readonly read: (bytes: Buffer) => string;
}

type Bytes = (Buffer | null)[];

const pageRows = 64;
const pageBytes = 64 * 1024;

/** Connects to MySQL or MariaDB, inside one consistent snapshot (of InnoDB's tables) that lasts until close. */
export async function openMysql(address: DatabaseUrl, signal?: AbortSignal): Promise<Database> {
  const { connection, settledUntil, mayLag } = await connect(address, signal);
  /** Whether the server has yet to send what was asked for. */
  let isBusy = false;
  const run = async (sql: string, where: string) => {
    isBusy = true;
    try {
      // No values are given apart from the text, so a ? of the operator's query stays what it is.
      const [rows, fields] = await connection.promise().query({ sql, rowsAsArray: true, typeCast: false });
      return { rows: rows as unknown as Bytes[], fields };
    } catch (error) {
      throw explain(error, address, where);
    } finally {
      isBusy = false;
    }
  };
  const stream = async function* (sql: string, where: string, columns: readonly MysqlColumn[]) {
    isBusy = true;
    const rows = connection
      .query({ sql, rowsAsArray: true, typeCast: false })
      .stream({ highWaterMark: pageRows });
    // A lost connection is reported on the connection only; the stream itself would wait forever.
    const onLost = (error: Error): unknown => rows.destroy(error);
    connection.once('error', onLost);
    let page: Cell[][] = [];
    let bytes = 0;
    try {
      for await (const row of rows as AsyncIterable<Bytes>) {
        page.push(columns.map(({ read }, index) => (row[index] == null ? null : read(row[index]))));
        for (const cell of row) bytes += cell?.length ?? 0;
        if (page.length < pageRows && bytes < pageBytes) continue;
        yield page;
        page = [];
        bytes = 0;
      }
      isBusy = false;
    } catch (error) {
      throw explain(error, address, where);
    } finally {
      connection.off('error', onLost);
    }
    if (page.length > 0) yield page;
  };

  return {
    settledUntil,
    mayLag: () => Promise.resolve(mayLag),
    quote,
    exact: (name) => `CAST(${quote(name)} AS BINARY)`,
    describe: async (select, where) => {
      const { fields } = await run(`SELECT * ${fromQuery(select)} LIMIT 0`, where);
      const columns = fields.map(describeColumn);
      return { columns, stream: (part) => stream(part, where, columns) };
    },
    estimate: async (select, where) => {
      // To explain a view takes more rights than to read it.
      const explained = await run(`EXPLAIN ${select}`, where).catch((error: unknown) => {
        if (error instanceof SourceUnavailableError) throw error;
        return undefined;
      });
      if (explained === undefined) return undefined;
      const { rows, fields } = explained;
      const estimated = fields.findIndex((field) => field.name === 'rows');
      let product = 1;
      for (const row of rows)
        if (String(row[0]) === '1') product *= Number(row[estimated]?.toString() ?? 1) || 1;
      return product;
    },
    first: async (select, where) => {
      const { rows } = await run(select, where);
      return rows[0]?.map((cell) => cell && asText(cell));
    },
    warning: async (where) => {
      const { rows } = await run('SHOW WARNINGS', where);
      const [, , message] = rows.find(([level]) => String(level) !== 'Note') ?? [];
      // It quotes the value, which may be an API key.
      return message?.toString().replace(/'[^]*'/, '…');
    },
    close: async () => {
      // The server would first send the rest of an abandoned result, or would not answer yet.
      if (isBusy) disconnect(connection);
      else await connection.promise().end();
    },
  };
}

function disconnect(connection: Connection): void {
  (connection as { stream?: Socket }).stream?.destroy();
}

async function connect(address: DatabaseUrl, signal: AbortSignal | undefined) {
  const { url } = address;
  const socketPath = url.searchParams.get('socketPath');
  const ssl = encryptionOf(url);
  const connection = createConnection({
    host: url.hostname.replaceAll(/^\[|\]$/g, ''),
    port: url.port === '' ? 3306 : Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
    charset: 'utf8mb4',
    connectTimeout: 10_000,
    keepAliveInitialDelay: probeAfter,
    ...(socketPath === null ? {} : { socketPath }),
    ...(ssl === undefined ? {} : { ssl }),
  });
  // A lost connection fails the query that waits for it; without a listener the event would end the process.
  connection.on('error', () => {});
  const ask = async (sql: string): Promise<unknown> => {
    const [rows] = await connection.promise().query({ sql, rowsAsArray: true });
    return (rows as unknown[][])[0]?.[0];
  };
  const stop = (): void => disconnect(connection);
  signal?.addEventListener('abort', stop);
  try {
    // The table of transactions has times of the server's own zone.
    await ask("SET time_zone = 'SYSTEM'");
    const settledUntil = Number((await ask(settledQuery).catch(() => 0)) ?? 0);
    const mayLag = Number(await ask(`SELECT ${isCopy}`)) === 1;
    for (const sql of sessionSettings) await ask(sql);
    for (const limit of ownLimits) await ask(`SET SESSION ${limit} = 0`).catch(() => {});
    return { connection, settledUntil, mayLag };
  } catch (error) {
    connection.destroy();
    throw unreachable(error, address, ssl !== undefined);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

/** How a connection is encrypted: undefined if the URL does not ask for TLS, or would do without. */
function encryptionOf({ searchParams }: URL): SslOptions | undefined {
  const mode = urlForms.mysql.encryption
    .flatMap((name) => searchParams.getAll(name))
    .find((value) => !/^(?:0|false|disabled?|allow|prefer(?:red)?)$/i.test(value));
  return mode === undefined ? undefined : { verifyIdentity: /full|identity/i.test(mode) };
}

const asText = (bytes: Buffer): string => bytes.toString('utf8');

function describeColumn(field: FieldPacket): MysqlColumn {
  const { name } = field;
  const type = field.columnType ?? field.type ?? 0;
  const column = { name, read: asText };
  if (types.numbers.includes(type)) return { ...column, newer: (quoted, time) => `${quoted} >= ${time}` };
  if (type === types.timestamp) {
    const newer = (quoted: string, time: number): string => `${quoted} >= FROM_UNIXTIME(${time / 1000})`;
    return { name, read: (bytes) => `${asText(bytes)}Z`, newer };
  }
  if (type === types.datetime || type === types.date) {
    const notInstant = 'is a time without a zone: write it as UNIX_TIMESTAMP(…) * 1000 if it is in UTC';
    return { ...column, notInstant };
  }
  if (type === types.json) return { ...column, isJson: true };
  if (type === types.bit) return { name, read: (bytes) => BigInt(`0x${bytes.toString('hex')}`).toString() };
  if (!types.strings.includes(type)) return column;
  // A NULL that the query itself writes has no length.
  if (field.characterSet === binaryCharset && field.columnLength !== 0) {
    const notText = 'bytes, not text: write it as CONVERT(… USING utf8mb4), or LOWER(HEX(…))';
    return { name, read: (bytes) => bytes.toString('hex'), notText };
  }
  return type === types.char ? { name, read: (bytes) => withoutPadding(asText(bytes)) } : column;
}

function quote(name: string): string {
  return escapeId(name, true);
}

interface MysqlError {
  readonly code?: string;
  readonly message?: string;
  readonly sqlState?: string;
  readonly fatal?: boolean;
  readonly sqlMessage?: string;
}

function explain(error: unknown, address: DatabaseUrl, where: string): SourceError {
  const { code = 'closed', message = '', sqlState, sqlMessage, fatal } = error as MysqlError;
  if (sqlState !== undefined && sqlMessage !== undefined && fatal !== true)
    return queryError(where, sqlMessage);
  // The driver refuses column names that JavaScript objects use themselves, such as __proto__.
  const [, refused] = /^The field name \((.*)\) can't/.exec(message) ?? [];
  if (refused !== undefined)
    return queryError(
      where,
      `MySQL's driver refuses a column of the name ${refused}: give it another name, by AS`,
    );
  return connectionError('lost', address, code);
}

function unreachable(error: unknown, address: DatabaseUrl, isEncrypted: boolean): SourceError {
  const { code = 'connection closed', sqlMessage } = error as MysqlError;
  if (code === 'ER_DBACCESS_DENIED_ERROR') return connectionError('databaseOrRights', address, code);
  // MariaDB also says this to a user who has to connect over TLS.
  if (/ACCESS_DENIED|NOT_SUPPORTED_AUTH/.test(code))
    return connectionError(isEncrypted ? 'password' : 'passwordOrEncryption', address, code);
  if (code === 'ER_BAD_DB_ERROR') return connectionError('database', address, code);
  if (sqlMessage !== undefined) return connectionError('refused', address, sqlMessage);
  return connectionError('unreachable', address, code);
}
