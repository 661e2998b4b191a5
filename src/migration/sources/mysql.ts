import { createConnection } from 'mysql2/promise';
import type { Connection, FieldPacket } from 'mysql2/promise';
import { anyNull, changedSince, columnOf, from, orderBy, where } from './sql.ts';
import { SourceError } from './source.ts';
import type { Column, Database, Ordered } from './paging.ts';
import type { DatabaseUrl } from './urls.ts';

const integers = new Set([1, 2, 3, 8, 9, 13]);
const decimals = new Set([0, 246]);
const floats = new Set([4, 5]);
const typeIds = { timestamp: 7, date: 10, time: 11, datetime: 12, bit: 16, json: 245, geometry: 255 };
const columnFlags = { enum: 256, set: 2048 };
const binary = 63;

const sessionSettings = [
  "SET NAMES utf8mb4, time_zone = '+00:00', wait_timeout = 86400",
  'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ',
  'START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY',
];

/** A column, how its bytes become text, and how that text becomes the same value in SQL again. */
interface MysqlColumn extends Column {
  readonly read: (bytes: Buffer) => string;
  readonly literal: (text: string) => string;
}

/** Connects to MySQL or MariaDB, inside one consistent snapshot (of InnoDB's tables) that lasts until close. */
export async function openMysql(address: DatabaseUrl): Promise<Database<MysqlColumn>> {
  const connection = await connect(address);
  const run = async (
    name: string,
    sql: string,
  ): Promise<{ rows: (Buffer | null)[][]; fields: FieldPacket[] }> => {
    try {
      // No values are given apart from the text, so a ? of the operator's query stays what it is.
      const [rows, fields] = await connection.query({ sql, rowsAsArray: true, typeCast: false });
      return { rows: rows as unknown as (Buffer | null)[][], fields };
    } catch (error) {
      throw explain(error, address, name);
    }
  };

  return {
    describe: async (select, name) => {
      const { fields } = await run(name, `SELECT * ${from(select)} LIMIT 0`);
      return fields.map(describeColumn);
    },
    count: async (query, key) => {
      const counted = key === undefined ? 'COUNT(*)' : `SUM(${atLeast(query, key)})`;
      const conditions = where(changedSince(query, quote));
      const { rows } = await run(
        query.where,
        `SELECT ${counted}, SUM(${anyNull(query, quote)}) ${from(query.select)}${conditions}`,
      );
      return { rows: Number(rows[0]?.[0] ?? 0), nulls: Number(rows[0]?.[1] ?? 0) };
    },
    page: async (query, limit, key) => {
      const same = key === undefined ? '0' : equals(query, key);
      const conditions = where(changedSince(query, quote), key && atLeast(query, key));
      const page = `SELECT source.*, ${same} ${from(query.select)}${conditions}${orderBy(query, quote)} LIMIT ${limit}`;
      const { rows } = await run(query.where, page);
      return rows.map((row) => ({
        cells: query.columns.map(({ read }, index) => (row[index] == null ? null : read(row[index]))),
        same: row.at(-1)?.toString('latin1') === '1',
      }));
    },
    close: () => connection.end(),
  };
}

async function connect(address: DatabaseUrl): Promise<Connection> {
  const { url } = address;
  const socketPath = url.searchParams.get('socketPath');
  const encrypted = ['ssl', 'tls', 'sslmode', 'ssl-mode'].some((name) =>
    /^(?:1|true|require)/i.test(url.searchParams.get(name) ?? ''),
  );
  let connection: Connection | undefined;
  try {
    connection = await createConnection({
      host: url.hostname.replaceAll(/^\[|\]$/g, ''),
      port: url.port === '' ? 3306 : Number(url.port),
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
      database: decodeURIComponent(url.pathname.slice(1)),
      charset: 'utf8mb4',
      connectTimeout: 10_000,
      ...(socketPath === null ? {} : { socketPath }),
      ...(encrypted ? { ssl: {} } : {}),
    });
    // A lost connection fails the query that waits for it; without a listener the event would end the process.
    connection.on('error', () => {});
    for (const sql of sessionSettings) await connection.query(sql);
    return connection;
  } catch (error) {
    connection?.destroy();
    throw unreachable(error, address);
  }
}

const asText = (bytes: Buffer): string => bytes.toString('utf8');
const asHex = (bytes: Buffer): string => bytes.toString('hex');
const inQuotes = (kind: string) => (text: string) => `${kind}'${text.replaceAll(/[^\d :.-]/g, '')}'`;
const asNumber = (text: string): string => text.replaceAll(/[^\d.-]/g, '');

function describeColumn(field: FieldPacket): MysqlColumn {
  const { name } = field;
  const type = field.columnType ?? field.type ?? 0;
  const flags = Number(field.flags);
  const column = {
    name,
    read: asText,
    literal: (text: string) => `_utf8mb4 X'${Buffer.from(text, 'utf8').toString('hex')}'`,
  };
  if (integers.has(type) || decimals.has(type)) {
    return { ...column, literal: asNumber, newer: (quoted, time) => `${quoted} >= ${time}` };
  }
  if (floats.has(type))
    return { ...column, noKey: 'is a floating-point number, which compares inexactly: CAST it AS DECIMAL' };
  if (type === typeIds.timestamp) {
    return {
      ...column,
      literal: inQuotes('TIMESTAMP'),
      zone: 'Z',
      newer: (quoted, time) => `${quoted} >= FROM_UNIXTIME(${time / 1000})`,
    };
  }
  const noMoment = `is a time without a zone: write it as CONCAT(…, 'Z') if it is in UTC, or with its own offset`;
  if (type === typeIds.datetime) return { ...column, literal: inQuotes('TIMESTAMP'), noMoment };
  if (type === typeIds.date) return { ...column, literal: inQuotes('DATE'), noMoment };
  if (type === typeIds.time) return { ...column, literal: inQuotes('TIME') };
  if (type === typeIds.bit) {
    return {
      ...column,
      read: (bytes) => BigInt(`0x${asHex(bytes)}`).toString(),
      noKey: 'is a BIT: CAST it AS UNSIGNED',
    };
  }
  if (type === typeIds.json || type === typeIds.geometry)
    return { ...column, noKey: 'has a type without an order of its own' };
  if ((flags & (columnFlags.enum | columnFlags.set)) !== 0) {
    return {
      ...column,
      noKey: 'is an ENUM or SET, which sorts by number but compares as text: CAST it AS CHAR',
    };
  }
  if (field.characterSet === binary) return { ...column, read: asHex, literal: (text) => `X'${text}'` };
  return column;
}

function quote(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/** The key's columns with the key's values as literals. */
function pairs(query: Ordered<MysqlColumn>, key: readonly string[]): { name: string; value: string }[] {
  return query.key.map((column, index) => ({
    name: columnOf(query, column, quote),
    value: query.columns[column]?.literal(key[index] ?? '') ?? 'NULL',
  }));
}

function equals(query: Ordered<MysqlColumn>, key: readonly string[]): string {
  return pairs(query, key)
    .map(({ name, value }) => `${name} = ${value}`)
    .join(' AND ');
}

/** Spelled out, for MySQL finds no range of an index in a comparison of whole rows. */
function atLeast(query: Ordered<MysqlColumn>, key: readonly string[]): string {
  const all = pairs(query, key);
  const spelled = all.reduceRight(
    (rest, { name, value }) =>
      rest === '' ? `${name} >= ${value}` : `(${name} > ${value} OR (${name} = ${value} AND ${rest}))`,
    '',
  );
  const [first] = all;
  return first === undefined ? 'TRUE' : `(${first.name} >= ${first.value} AND ${spelled})`;
}

interface MysqlError {
  readonly code?: string;
  readonly sqlState?: string;
  readonly fatal?: boolean;
  readonly sqlMessage?: string;
}

function explain(error: unknown, address: DatabaseUrl, name: string): SourceError {
  const { code, sqlState, sqlMessage, fatal } = error as MysqlError;
  if (sqlState !== undefined && sqlMessage !== undefined && fatal !== true) {
    return new SourceError(`${name}: ${sqlMessage}`.replaceAll(/\s+/g, ' '));
  }
  return new SourceError(
    `lost the connection to ${address.shown} (${code ?? 'closed'}): run the same command again to go on`,
  );
}

function unreachable(error: unknown, address: DatabaseUrl): SourceError {
  const code = (error as MysqlError).code ?? 'connection closed';
  if (/ACCESS_DENIED|NOT_SUPPORTED_AUTH/.test(code)) {
    return new SourceError(`${address.shown} refuses the user or password: check both in the URL`);
  }
  if (code === 'ER_BAD_DB_ERROR')
    return new SourceError(`${address.shown}: there is no such database: check the URL's path`);
  return new SourceError(
    `cannot reach ${address.shown} (${code}): check the host and port, and that the server runs`,
  );
}
