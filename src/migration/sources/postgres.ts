import { Client, DatabaseError } from 'pg';
import type { CustomTypesConfig, QueryArrayResult } from 'pg';
import { anyNull, changedSince, columnOf, from, orderBy, where } from './sql.ts';
import { SourceError } from './source.ts';
import type { Column, Database, Ordered } from './paging.ts';
import type { DatabaseUrl } from './urls.ts';

const typeIds = { date: 1082, timestamp: 1114, timestamptz: 1184, numbers: [20, 23, 1700, 701] };

// Every value crosses as the text PostgreSQL writes, which it also reads back exactly: no precision is ever lost.
const asText = { getTypeParser: () => (text: unknown) => text };
const sessionSettings = [
  'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY',
  "SET LOCAL TIME ZONE 'UTC'",
  "SET LOCAL DateStyle = 'ISO'",
  "SET LOCAL bytea_output = 'hex'",
  'SET LOCAL extra_float_digits = 3',
  'SET LOCAL statement_timeout = 0',
  'SET LOCAL idle_in_transaction_session_timeout = 0',
];

/** Connects to PostgreSQL, inside one REPEATABLE READ snapshot that lasts until close. */
export async function openPostgres(address: DatabaseUrl): Promise<Database> {
  const client = new Client({
    connectionString: address.url.href,
    connectionTimeoutMillis: 10_000,
    application_name: 'profile-bridge-migrate',
    types: asText as unknown as CustomTypesConfig,
  });
  // A lost connection fails the query that waits for it; without a listener the event would end the process.
  client.on('error', () => {});
  const run = async (
    name: string,
    text: string,
    values: readonly string[] = [],
  ): Promise<QueryArrayResult<(string | null)[]>> => {
    try {
      return await client.query<(string | null)[]>({ text, values: [...values], rowMode: 'array' });
    } catch (error) {
      throw explain(error, address, name);
    }
  };
  try {
    await client.connect();
    await client.query(sessionSettings.join(';'));
  } catch (error) {
    await client.end().catch(() => {});
    throw error instanceof SourceError ? error : unreachable(error, address);
  }

  return {
    describe: async (select, name) => {
      const { fields } = await run(name, `SELECT * ${from(select)} LIMIT 0`);
      return fields.map((field) => describeColumn(field.name, field.dataTypeID));
    },
    count: async (query, key) => {
      const counted = key === undefined ? '' : ` FILTER (WHERE ${compare(query, '>=', key)})`;
      const nulls = `count(*) FILTER (WHERE ${anyNull(query, quote)})`;
      const conditions = where(changedSince(query, quote));
      const { rows } = await run(
        query.where,
        `SELECT count(*)${counted}, ${nulls} ${from(query.select)}${conditions}`,
        key,
      );
      return { rows: Number(rows[0]?.[0] ?? 0), nulls: Number(rows[0]?.[1] ?? 0) };
    },
    page: async (query, limit, key) => {
      const same = key === undefined ? 'false' : compare(query, '=', key);
      const conditions = where(changedSince(query, quote), key && compare(query, '>=', key));
      const page = `SELECT source.*, ${same} ${from(query.select)}${conditions}${orderBy(query, quote)} LIMIT ${limit}`;
      const { rows } = await run(query.where, page, key);
      return rows.map((cells) => ({ cells: cells.slice(0, -1), same: cells.at(-1) === 't' }));
    },
    close: () => client.end(),
  };
}

function describeColumn(name: string, type: number): Column {
  const zoned = `is a time without a zone: write it as ("${name}" AT TIME ZONE 'UTC'), with the zone it is in`;
  if (type === typeIds.timestamp || type === typeIds.date) return { name, noMoment: zoned };
  if (type === typeIds.timestamptz)
    return { name, newer: (column, time) => `${column} >= to_timestamp(${time / 1000})` };
  if (typeIds.numbers.includes(type)) return { name, newer: (column, time) => `${column} >= ${time}` };
  return { name };
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A comparison of whole keys in one step, which PostgreSQL can answer from an index on them. */
function compare(query: Ordered, operator: '>=' | '=', key: readonly string[]): string {
  const names = query.key.map((index) => columnOf(query, index, quote)).join(', ');
  return `(${names}) ${operator} (${key.map((_, index) => `$${index + 1}`).join(', ')})`;
}

function explain(error: unknown, address: DatabaseUrl, name: string): SourceError {
  if (error instanceof DatabaseError && !/^(?:08|57)/.test(error.code ?? '')) {
    const hint = error.hint === undefined ? '' : ` (${error.hint})`;
    return new SourceError(`${name}: ${error.message}${hint}`.replaceAll(/\s+/g, ' '));
  }
  return new SourceError(
    `lost the connection to ${address.shown} (${codeOf(error)}): run the same command again to go on`,
  );
}

function unreachable(error: unknown, address: DatabaseUrl): SourceError {
  const code = codeOf(error);
  if (code.startsWith('28'))
    return new SourceError(`${address.shown} refuses the user or password: check both in the URL`);
  if (code === '3D000')
    return new SourceError(`${address.shown}: there is no such database: check the URL's path`);
  return new SourceError(
    `cannot reach ${address.shown} (${code}): check the host and port, and that the server runs`,
  );
}

function codeOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string') return code;
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  if (first !== undefined) return codeOf(first);
  return /timeout/i.test(String(message)) ? 'timeout' : 'connection closed';
}
