import { readFile } from 'node:fs/promises';
import { beforeAll, expect, jest, test } from '@jest/globals';
import { Client } from 'pg';
import { hashApiKey } from '../../../../src/redis/keys.ts';
import { describeWithPostgres } from '../../../support/servers/describe-with.ts';
import { runPostgres, startPostgres } from '../../../support/servers/postgres.ts';
import { until } from '../../../support/until.ts';
import { behavesAsDatabase } from './database-suite.ts';
import { expectLegacyRecords, LEGACY_TABLES } from './legacy-tables.ts';
import { mappingOf, messageOf, readRows, recordsBy, withSource } from '../reading.ts';

/** Whether a session is in a state. */
const hasActivity =
  (state: string) =>
  async (url: string): Promise<boolean> => {
    const client = new Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query(`SELECT FROM pg_stat_activity WHERE ${state}`);
    await client.end();
    return rows.length > 0;
  };
const isSlow = hasActivity("wait_event = 'PgSleep'");
const isBlocked = hasActivity("wait_event_type = 'Lock'");

/** How old a reader takes what a table has: whether anything in it is settled, and whether it may lag. */
async function agesOf(reader: string, table: string): Promise<{ isSettled: boolean; mayLag: unknown }> {
  const yaml = `entities: {profiles: {query: 'SELECT 1 AS "organizationId", id AS "userId" FROM ${table}', key: [userId]}}`;
  return await withSource(reader, yaml, ({ settledUntil, mayLag }) =>
    Promise.resolve({ isSettled: settledUntil > 0, mayLag }),
  );
}

describeWithPostgres('a PostgreSQL source', () => {
  const server = behavesAsDatabase({
    start: startPostgres,
    main: 'postgres',
    run: runPostgres,
    quote: (name) => `"${name}"`,
    numbers: (count) => `SELECT n FROM generate_series(1, ${count}) AS n`,
    slow: 'pg_sleep(60)::text',
    isSlow,
    lock: (table) => `LOCK TABLE ${table}`,
    isLockAwaited: isBlocked,
    bytes: 'bytea',
    byteLiteral: (hex) => `'\\x${hex}'`,
    openTransaction: async (url, statement) => {
      const client = new Client({ connectionString: url });
      await client.connect();
      await client.query('BEGIN');
      await client.query(statement);
      return () => client.end();
    },
  });
  let url = '';
  beforeAll(async () => {
    await runPostgres(server().url('postgres'), 'CREATE DATABASE typed');
    url = server().url('typed');
  });

  test('the worked example reads every entity of a legacy schema', async () => {
    await runPostgres(url, ...LEGACY_TABLES.postgres);
    const yaml = await readFile('src/migration/sources/examples/postgresql.yaml', 'utf8');
    await withSource(url, yaml, expectLegacyRecords);
  });

  test('keys of any type identify their rows, without losing precision', async () => {
    const columns: Record<string, string> = {
      id: `n::bigint * 999999999999`,
      uuid: `md5(n::text)::uuid`,
      numeric: `n * 0.000000000000000000000000001 + 1e20`,
      moment: `'2026-01-01'::timestamptz + n * interval '1 microsecond'`,
      local: `'2026-01-01'::timestamp + n * interval '1 microsecond'`,
      float8: `0.1::float8 * n`,
      float4: `0.1::float4 * n`,
      bytes: `decode(md5(n::text), 'hex')`,
      word: `('{a,B,c,D,e,F}'::text[])[n % 6 + 1] || n::text COLLATE "C"`,
      german: `('{a,B,ä,Z,ß,_}'::text[])[n % 6 + 1] || n::text COLLATE "de-x-icu"`,
      padded: `n::text::char(9)`,
      day: `'2026-01-01'::date + n`,
      address: `'10.0.0.0'::inet + n`,
      enumerated: `('{green,red,blue}'::colour[])[n]`,
      truth: `n = 1`,
    };
    await runPostgres(url, `CREATE TYPE colour AS ENUM ('red', 'green', 'blue')`);
    for (const [name, expression] of Object.entries(columns)) {
      const count = name === 'enumerated' ? 3 : name === 'truth' ? 2 : 40;
      const query = `SELECT 'a' AS "organizationId", n AS "userId", ${expression} AS k FROM generate_series(1, ${count}) AS n`;
      const { rows } = await withSource(url, mappingOf(query, 'k'), (source) => readRows(source, 'profiles'));
      expect([name, new Set(rows.map(({ at }) => at)).size]).toEqual([name, count]);
    }
  });

  test('texts arrive as they are, whatever characters they hold, and null is none', async () => {
    const query = String.raw`SELECT 'a' AS "organizationId", '\N' AS "userId", NULL AS username, E'\b\f\n\r\t\x0b\\n\\.é😀' AS "profilePictureUrl"`;
    expect(await recordsBy(url, mappingOf(query))).toEqual([
      { organizationId: 'a', userId: String.raw`\N`, profilePictureUrl: '\b\f\n\r\t\v\\n\\.é😀' },
    ]);
  });

  test('a JSON string is text without its quotes, JSON null is none, and the key of an API is hashed as such', async () => {
    const query = String.raw`SELECT 1 AS id, 'a' AS "organizationId", data->'key' AS "apiKey", data->'role' AS role, data->'none' AS client, data->'user' AS "userId" FROM (SELECT '{"key": "k\"1", "role": "player", "none": null, "user": 7}'::json AS data) AS rows`;
    for (const type of ['json', 'jsonb']) {
      const yaml = `entities: {api-keys: {query: ${JSON.stringify(query.replace('::json', `::${type}`))}, key: [id]}}`;
      expect(await recordsBy(url, yaml)).toEqual([
        { organizationId: 'a', apiKeySha256: hashApiKey('k"1'), role: 'player', userId: '7' },
      ]);
    }
  });

  test('a JSON object or array is no text, and its row is invalid; a JSON string may look like one', async () => {
    const query = `SELECT name ->> 'id' AS "userId", 'a' AS "organizationId", name -> 'is' AS username, name -> 'has' AS avatar
      FROM (VALUES ('{"id": 1, "is": {"first": "ada"}}'::jsonb), ('{"id": 2, "is": ["ada"]}'), ('{"id": 3, "is": "[ada]{}"}'),
        ('{"id": 4, "has": {"datasourceId": "d", "objectDefinitionId": "o"}}')) AS names (name)`;
    const yaml = mappingOf(query);
    expect(await recordsBy(url, yaml)).toEqual([
      'username is a JSON object or array, not text',
      'username is a JSON object or array, not text',
      { organizationId: 'a', userId: '3', username: '[ada]{}' },
      { organizationId: 'a', userId: '4', avatar: { datasourceId: 'd', objectDefinitionId: 'o' } },
    ]);
    const { rows } = await withSource(url, yaml, (source) => readRows(source, 'profiles'));
    expect(rows[0]).toMatchObject({ organizationId: 'a', userId: '1' });
    expect(await recordsBy(url, yaml, { organizationId: 'b' })).toEqual([]);
  });

  test('the blanks around a JSON value are no part of it', async () => {
    const query = `SELECT 1 AS "organizationId", ' 7\n'::json AS "userId", ' "ada" '::json AS username, ' null'::json AS "profilePictureUrl"`;
    expect(await recordsBy(url, mappingOf(query, 'organizationId'))).toEqual([
      { organizationId: '1', userId: '7', username: 'ada' },
    ]);
  });

  test.each([
    ['unquoted names', 'SELECT 1 AS organizationId, 2 AS userId', 'x', /no column "x"/],
    [
      'unquoted names',
      'SELECT 1 AS organizationId, 2 AS userId',
      'organizationid',
      /unknown field "userid" \(is userId meant\?\); PostgreSQL lowers names/,
    ],
    [
      'an unquoted key',
      'SELECT 1 AS organizationId, 2 AS "userId"',
      'organizationId',
      /no column "organizationId", but "organizationid"; PostgreSQL lowers names/,
    ],
    [
      'a moment without a zone',
      `SELECT 1 AS "organizationId", 2 AS "userId", now()::timestamp AS "updatedAt"`,
      'userId',
      /updatedAt is a time without a zone: write it as \(… AT TIME ZONE 'UTC'\), with/,
    ],
    [
      'an array',
      `SELECT 1 AS "organizationId", 2 AS "userId", ARRAY['a', 'b'] AS username`,
      'userId',
      /username holds several values, not text: write one of them, such as \(…\)\[1\]/,
    ],
    [
      'a composite',
      `SELECT 1 AS "organizationId", 2 AS "userId", avatar FROM (SELECT 'd' AS "datasourceId", 'o' AS "objectDefinitionId") AS avatar`,
      'userId',
      /avatar holds several values, not text: write .*to_json/,
    ],
  ])('opening names %s, with the remedy', async (_, query, key, message) => {
    expect(await messageOf(() => recordsBy(url, mappingOf(query, key)))).toMatch(message);
  });

  test('rows older than a given time can be left out by the database; rows without a time stay', async () => {
    const query = `SELECT 'a' AS "organizationId", n AS "userId", CASE WHEN n < 9 THEN to_timestamp(n) END AS "updatedAt" FROM generate_series(1, 10) AS n`;
    const rows = await recordsBy(url, mappingOf(query), { since: 7000 });
    expect(rows.map((row) => (row as { userId: string }).userId)).toEqual(['7', '8', '9', '10']);
  });

  test('rows that a row policy would hide are not left out in silence: the query is refused', async () => {
    await runPostgres(
      url,
      'CREATE TABLE hidden ("organizationId" text, "userId" text)',
      `INSERT INTO hidden VALUES ('a', '1'), ('a', '2')`,
      'ALTER TABLE hidden ENABLE ROW LEVEL SECURITY',
      `CREATE POLICY own ON hidden USING ("userId" = '1')`,
      `CREATE ROLE reader LOGIN`,
      'GRANT SELECT ON hidden TO reader',
    );
    const yaml = 'entities: {profiles: {query: SELECT * FROM hidden, key: [userId]}}';
    const limited = new URL(url);
    limited.username = 'reader';
    expect(await messageOf(() => recordsBy(limited.href, yaml))).toBe(
      'SourceError: entities.profiles.query: query would be affected by row-level security policy for table "hidden": read as a user with BYPASSRLS, or as the owner of the table',
    );
    expect(await recordsBy(url, yaml)).toHaveLength(2);
  });

  test('a connection that the server refuses is reported with its reason, such as that it requires TLS', async () => {
    const nobody = new URL(url);
    nobody.username = 'nobody';
    expect(await messageOf(() => recordsBy(nobody.href, mappingOf('SELECT 1')))).toBe(
      `SourceError: postgres://nobody@${nobody.host}/typed refuses the connection (role "nobody" does not exist): correct this on the server, or in the URL, where ?sslmode=verify-full asks for TLS`,
    );
  });

  test('every parameter that demands TLS gets it or fails, without a warning of the driver', async () => {
    const warned = jest.spyOn(process, 'emitWarning');
    const modes = ['require', 'verify-ca', 'verify-full', 'no-verify'].map((mode) => `sslmode=${mode}`);
    for (const parameter of [...modes, 'sslrootcert=system', 'sslmode=require&sslrootcert=system'])
      expect(await messageOf(() => recordsBy(`${url}?${parameter}`, mappingOf('SELECT 1')))).toMatch(
        /cannot connect to [^ ]* over TLS \(SSL\)/,
      );
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });

  test.each([
    ['uuid', 'invalid input syntax for type uuid: …'],
    ['int', 'invalid input syntax for type integer: …'],
  ])('an API key that cannot be cast to %s is not shown', async (type, message) => {
    const yaml = `entities: {api-keys: {query: 'SELECT 1 AS "organizationId", 2 AS k, x::${type}::text AS "apiKey", 3 AS role FROM (SELECT $$very-private$$ || now()) AS keys (x)', key: [k]}}`;
    expect(await messageOf(() => recordsBy(url, yaml))).toBe(
      `SourceError: entities.api-keys.query: ${message}`,
    );
  });

  test('an API key is not shown either by a server that reports in another language', async () => {
    await runPostgres(
      url,
      `CREATE FUNCTION reject(key text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'ungültige Eingabesyntax für Typ uuid: »%«', key USING ERRCODE = '22P02'; END $$`,
    );
    const yaml = `entities: {api-keys: {query: 'SELECT 1 AS "organizationId", 2 AS k, reject($$very-private$$) AS "apiKey", 3 AS role', key: [k]}}`;
    expect(await messageOf(() => recordsBy(url, yaml))).toBe(
      'SourceError: entities.api-keys.query: ungültige Eingabesyntax für Typ uuid: …',
    );
  });

  test.each(['ssl=false', 'ssl=0', 'sslmode=disable'])('with %s, connects without TLS', async (parameter) => {
    const yaml = `entities: {profiles: {query: 'SELECT 1 AS "organizationId", 2 AS "userId"', key: [userId]}}`;
    expect(await recordsBy(`${url}?${parameter}`, yaml)).toEqual([{ organizationId: '1', userId: '2' }]);
  });

  test("the server's limits on statements and transactions do not bind the reader", async () => {
    const limits = ['statement_timeout', 'idle_in_transaction_session_timeout'];
    for (const limit of limits) await runPostgres(url, `ALTER DATABASE typed SET ${limit} = '59min'`);
    const query = `SELECT current_setting('${limits[0]}') AS "organizationId", current_setting('${limits[1]}') AS "userId"`;
    expect(await recordsBy(url, mappingOf(query))).toEqual([{ organizationId: '0', userId: '0' }]);
    for (const limit of limits) await runPostgres(url, `ALTER DATABASE typed RESET ${limit}`);
  });

  test('a database that subscribes to tables of another does not know the transactions there: nothing is settled, and they may lag', async () => {
    await runPostgres(
      url,
      'CREATE ROLE watcher LOGIN IN ROLE pg_read_all_stats',
      'CREATE TABLE sent (id int) PARTITION BY LIST (id)',
      'CREATE TABLE sent_1 PARTITION OF sent FOR VALUES IN (1)',
      'CREATE TABLE own AS SELECT 1 AS id',
      'CREATE VIEW mixed AS SELECT id FROM own UNION SELECT id FROM sent',
      'GRANT SELECT ON sent, sent_1, own, mixed TO watcher',
    );
    const ages = async (table: string) => await agesOf(url.replace('postgres:secret', 'watcher'), table);
    await runPostgres(
      url,
      `CREATE SUBSCRIPTION copy CONNECTION 'host=127.0.0.1 port=1' PUBLICATION all_tables WITH (connect = false)`,
      'ALTER SUBSCRIPTION copy ENABLE',
    );
    try {
      // It has no tables yet.
      expect(await ages('sent')).toEqual({ isSettled: true, mayLag: false });
      await runPostgres(
        url,
        `INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate)
          SELECT oid, 'sent'::regclass, 'r' FROM pg_subscription`,
      );
      for (const table of ['sent', 'sent_1', 'mixed'])
        expect(await ages(table)).toEqual({ isSettled: false, mayLag: true });
      expect(await ages('own')).toEqual({ isSettled: false, mayLag: false });
      await runPostgres(url, "UPDATE pg_subscription_rel SET srrelid = 'sent_1'::regclass");
      expect(await ages('sent')).toEqual({ isSettled: false, mayLag: true });
      // As disable_on_error does, so just when the tables begin to be out of date.
      await runPostgres(url, 'ALTER SUBSCRIPTION copy DISABLE');
      expect(await ages('sent')).toEqual({ isSettled: false, mayLag: true });
    } finally {
      await runPostgres(
        url,
        'ALTER SUBSCRIPTION copy DISABLE',
        'ALTER SUBSCRIPTION copy SET (slot_name = NONE)',
        'DROP SUBSCRIPTION copy',
      );
    }
    expect(await ages('sent')).toEqual({ isSettled: true, mayLag: false });
  });

  test('nothing in a materialized view or a foreign table is settled, and they may lag, also where a view or a table reads them', async () => {
    await runPostgres(
      url,
      'CREATE TABLE original AS SELECT 1 AS id',
      'CREATE MATERIALIZED VIEW refreshed AS SELECT id FROM original',
      'CREATE VIEW narrowed AS SELECT id FROM refreshed WHERE id > 0',
      'CREATE EXTENSION file_fdw',
      'CREATE SERVER elsewhere FOREIGN DATA WRAPPER file_fdw',
      `CREATE FOREIGN TABLE remote (id int) SERVER elsewhere OPTIONS (filename '/dev/null')`,
      'CREATE TABLE divided (id int) PARTITION BY LIST (id)',
      'ALTER TABLE divided ATTACH PARTITION remote FOR VALUES IN (1)',
      'CREATE VIEW joined AS SELECT id FROM original JOIN remote USING (id)',
    );
    for (const table of ['refreshed', 'narrowed', 'remote', 'divided', 'joined'])
      expect([table, await agesOf(url, table)]).toEqual([table, { isSettled: false, mayLag: true }]);
    expect(await agesOf(url, 'original')).toEqual({ isSettled: true, mayLag: false });
  });

  test.each([
    'TRUNCATE nightly; INSERT INTO nightly VALUES (2)',
    'ALTER TABLE nightly ALTER COLUMN id TYPE bigint',
    'DROP TABLE nightly; CREATE TABLE nightly AS SELECT 2 AS id',
  ])('a table that was filled anew after the snapshot is not read as empty: %s', async (fill) => {
    await runPostgres(url, 'DROP TABLE IF EXISTS nightly', 'CREATE TABLE nightly AS SELECT 1 AS id');
    const yaml = `entities: {profiles: {query: 'SELECT 1 AS "organizationId", id AS "userId" FROM nightly', key: [userId]}}`;
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(`BEGIN; ${fill}`);
    const reading = messageOf(() => recordsBy(url, yaml));
    await until(() => isBlocked(url));
    await client.query('COMMIT');
    await client.end();
    expect(await reading).toBe(
      'SourceError: entities.profiles.query: nightly was truncated, rewritten or made anew while it was opened: run the same command again',
    );
    expect(await recordsBy(url, yaml)).toHaveLength(1);
  });

  test('a replica that gives up a long query is named, with the remedy', async () => {
    const message = 'canceling statement due to conflict with recovery';
    await runPostgres(
      url,
      `CREATE FUNCTION give_up() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '${message}' USING ERRCODE = '40001'; END $$`,
    );
    const yaml = `entities: {profiles: {query: 'SELECT 1 AS "organizationId", give_up() AS "userId"', key: [userId]}}`;
    expect(await messageOf(() => recordsBy(url, yaml))).toBe(
      `SourceError: entities.profiles.query: ${message}: read from the primary, or set hot_standby_feedback on the replica`,
    );
  });

  test('a query does not run on when its reader is gone', async () => {
    const query = `SELECT 1 AS "organizationId", 2 AS "userId", pg_sleep(60)::text AS username FROM generate_series(1, 2)`;
    const started = performance.now();
    await withSource(url, mappingOf(query), async (source) => {
      for await (const _ of source.read('profiles', { size: 500, signal: AbortSignal.timeout(300) }));
    });
    await until(async () => !(await isSlow(url)));
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  test('a lost connection is reported in one line with the remedy', async () => {
    // More than all buffers on the way hold.
    const query = `SELECT n::text AS "organizationId", n AS "userId", repeat('x', 2000) AS "profilePictureUrl" FROM generate_series(1, 20000) n`;
    const said = await messageOf(() =>
      withSource(url, mappingOf(query), async (source) => {
        for await (const { rows } of source.read('profiles', { size: 500 })) {
          if (rows.length === 0) continue;
          await runPostgres(
            server().url('postgres'),
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'typed'",
          );
        }
      }),
    );
    expect(said).toMatch(
      /^SourceError: lost the connection to postgres:\/\/postgres@[^ ]* \([^)]*\): run the same command again/,
    );
  });

  test('bytes that are not UTF-8, in a database that does not check, are refused rather than replaced', async () => {
    await runPostgres(
      server().url('postgres'),
      `CREATE DATABASE loose ENCODING 'SQL_ASCII' TEMPLATE template0`,
    );
    const loose = server().url('loose');
    await runPostgres(loose, 'CREATE TABLE names (name text)', `INSERT INTO names VALUES (E'caf\\xe9')`);
    const yaml = `entities: {denylist: {query: 'SELECT 1 AS "organizationId", name AS username FROM names', key: [username]}}`;
    expect(await messageOf(() => recordsBy(loose, yaml))).toMatch(
      /entities\.denylist\.query: invalid byte sequence for encoding "UTF8"/,
    );
  });
});
