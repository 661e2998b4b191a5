import { readFile } from 'node:fs/promises';
import { beforeAll, expect, test } from '@jest/globals';
import { createConnection } from 'mysql2/promise';
import { parseMapping } from '../../../../src/migration/sources/mapping.ts';
import { openSource } from '../../../../src/migration/sources/open.ts';
import { describeWithMariadb } from '../../../support/servers/describe-with.ts';
import { runMariadb, startMariadb } from '../../../support/servers/mariadb.ts';
import { until } from '../../../support/until.ts';
import { behavesAsDatabase } from './database-suite.ts';
import { expectLegacyRecords, LEGACY_TABLES } from './legacy-tables.ts';
import { mappingOf, messageOf, readRows, recordsBy, withSource } from '../reading.ts';

/** Whether a session is in a state. */
const hasProcess =
  (state: string) =>
  async (url: string): Promise<boolean> => {
    const connection = await createConnection({ uri: url });
    const [rows] = await connection.query(
      `SELECT 1 FROM information_schema.processlist WHERE state = '${state}'`,
    );
    await connection.end();
    return (rows as unknown[]).length > 0;
  };
const isBlocked = hasProcess('Waiting for table metadata lock');

async function settledUntilOf(url: string): Promise<number> {
  // The server renews its table of transactions only once nobody has read it for a tenth of a second.
  await runMariadb(url, 'DO SLEEP(0.2)');
  const yaml = `entities: {profiles: {query: 'SELECT 1 AS organizationId, 2 AS userId', key: [userId]}}`;
  return await withSource(url, yaml, (source) => Promise.resolve(source.settledUntil));
}

/** A time zone, as TZ takes it, whose summer time ends after so many ms. */
function zoneWithSummerTimeFor(ms: number): string {
  const end = new Date(Date.now() + ms + 3_600_000);
  const day = Math.ceil((end.getTime() - Date.UTC(end.getUTCFullYear(), 0, 1)) / 86_400_000);
  return `WIN0SUM-1,${(day + 180) % 365},${day - 1}/${end.toISOString().slice(11, 19)}`;
}

describeWithMariadb('a MySQL or MariaDB source', () => {
  const server = behavesAsDatabase({
    start: startMariadb,
    main: '',
    run: runMariadb,
    quote: (name) => `\`${name}\``,
    numbers: (count) => `SELECT seq AS n FROM seq_1_to_${count}`,
    slow: 'SLEEP(60)',
    isSlow: hasProcess('User sleep'),
    lock: (table) => `LOCK TABLES ${table} WRITE`,
    isLockAwaited: isBlocked,
    bytes: 'varbinary(32)',
    byteLiteral: (hex) => `X'${hex}'`,
    openTransaction: async (url, statement) => {
      const connection = await createConnection({ uri: url });
      await connection.query('START TRANSACTION');
      await connection.query(statement);
      // The server's table of transactions is up to a tenth of a second old.
      await connection.query('DO SLEEP(0.2)');
      return async () => {
        await connection.query('COMMIT');
        await connection.query('DO SLEEP(0.2)');
        await connection.end();
      };
    },
  });
  let url = '';
  beforeAll(async () => {
    await runMariadb(server().url(''), 'CREATE DATABASE typed CHARACTER SET utf8mb4');
    url = server().url('typed');
  });

  test('the worked example reads every entity of a legacy schema, by mysql:// and mariadb://', async () => {
    await runMariadb(url, ...LEGACY_TABLES.mariadb);
    const yaml = await readFile('src/migration/sources/examples/mysql.yaml', 'utf8');
    for (const scheme of ['mysql:', 'mariadb:']) {
      await withSource(url.replace('mysql:', scheme), yaml, expectLegacyRecords);
    }
  });

  test('in the hour that is repeated when summer time ends, nothing counts as read before it was written', async () => {
    const repeated = await startMariadb(zoneWithSummerTimeFor(30 * 60_000));
    try {
      await runMariadb(repeated.url(''), 'CREATE DATABASE summer', 'CREATE TABLE summer.late (n INT)');
      const summer = repeated.url('summer');
      const connection = await createConnection({ uri: summer });
      const before = Date.now();
      await connection.query('START TRANSACTION');
      await connection.query('INSERT INTO late VALUES (1)');
      expect(await settledUntilOf(summer)).toBeLessThanOrEqual(before);
      await connection.end();
      await until(async () => (await settledUntilOf(summer)) > before);
      expect(await settledUntilOf(summer)).toBeLessThanOrEqual(Date.now());
    } finally {
      await repeated.stop();
    }
  });

  test('a transaction that was prepared and has no session may have begun at any time', async () => {
    await runMariadb(url, 'CREATE TABLE prepared (n INT)');
    await runMariadb(
      url,
      "XA START 'late'",
      'INSERT INTO prepared VALUES (1)',
      "XA END 'late'",
      "XA PREPARE 'late'",
    );
    await until(async () => (await settledUntilOf(url)) === 0);
    await runMariadb(url, "XA ROLLBACK 'late'");
    await until(async () => (await settledUntilOf(url)) > 0);
  });

  test.each([
    ['TRUNCATE TABLE nightly', 'INSERT INTO nightly VALUES (2)'],
    ['ALTER TABLE nightly MODIFY id BIGINT, FORCE'],
  ])('a table that was filled anew after the snapshot is not read as empty: %s', async (...fill) => {
    await runMariadb(url, 'DROP TABLE IF EXISTS nightly', 'CREATE TABLE nightly AS SELECT 1 AS id');
    const yaml = `entities: {profiles: {query: 'SELECT 1 AS organizationId, id AS userId FROM nightly', key: [userId]}}`;
    const connection = await createConnection({ uri: url });
    await connection.query('LOCK TABLES nightly WRITE');
    const reading = messageOf(() => recordsBy(url, yaml));
    await until(() => isBlocked(url));
    for (const statement of fill) await connection.query(statement);
    await connection.end();
    expect(await reading).toMatch(/Table definition has changed, please retry transaction/);
    expect(await recordsBy(url, yaml)).toHaveLength(1);
  });

  test('keys of any type identify their rows, without losing precision', async () => {
    const columns: Record<string, string> = {
      big: 'CAST(seq AS UNSIGNED) + 18446744073709551000',
      price: 'CAST(seq * 0.000000001 + 12345678901234567890 AS DECIMAL(40, 9))',
      moment: "TIMESTAMP'2026-01-01 00:00:00.000000' + INTERVAL seq MICROSECOND",
      day: "DATE'2026-01-01' + INTERVAL seq DAY",
      hours: 'SEC_TO_TIME(seq * 3600.5)',
      bytes: 'UNHEX(MD5(seq))',
      latin: "CONVERT(CONCAT(ELT(seq % 5 + 1, 'é', 'E', 'ß', '\\'', '?'), seq) USING latin1)",
      swedish: "CONCAT(ELT(seq % 5 + 1, 'å', 'A', 'ö', 'Z', '_'), seq) COLLATE utf8mb4_swedish_ci",
      binary: "CONCAT(ELT(seq % 4 + 1, 'å', 'A', '😀', 'z'), seq) COLLATE utf8mb4_bin",
      uuid: "CAST(CONCAT(LPAD(HEX(seq * 97), 8, '0'), '-0000-4000-8000-00000000000', seq % 7) AS UUID)",
    };
    for (const [name, expression] of Object.entries(columns)) {
      const query = `SELECT 'a?' AS organizationId, seq AS userId, ${expression} AS k FROM seq_1_to_40`;
      const { rows } = await withSource(url, mappingOf(query, 'k'), (source) => readRows(source, 'profiles'));
      expect([name, new Set(rows.map(({ at }) => at)).size]).toEqual([name, 40]);
    }
  });

  test('opening names a moment without a zone, with the remedy', async () => {
    await runMariadb(url, 'CREATE TABLE kinds (d DATETIME)');
    const query = 'SELECT 1 AS organizationId, 2 AS userId, d AS updatedAt FROM kinds';
    expect(await messageOf(() => recordsBy(url, mappingOf(query)))).toMatch(
      /updatedAt is a time without a zone: write it as UNIX_TIMESTAMP/,
    );
  });

  test('a column that the driver refuses to carry is named, and the connection is not said to be lost', async () => {
    expect(
      await messageOf(() =>
        recordsBy(url, mappingOf('SELECT 1 AS organizationId, 2 AS `__proto__`', 'organizationId')),
      ),
    ).toBe(
      "SourceError: entities.profiles.query: MySQL's driver refuses a column of the name __proto__: give it another name, by AS",
    );
  });

  test('a time in UTC may be given with its zone, and a BIT is a number', async () => {
    await runMariadb(
      url,
      'CREATE TABLE moments (d DATETIME(6), b BIT(1))',
      "INSERT INTO moments VALUES ('2026-01-02 03:04:05.678901', b'1')",
    );
    const query =
      "SELECT 1 AS organizationId, 2 AS userId, CONCAT(d, 'Z') AS updatedAt, CONCAT('0x', REPEAT('a', 40)) AS evmWalletAddress, b AS evmWalletVerified FROM moments";
    expect(await recordsBy(url, mappingOf(query))).toEqual([
      {
        organizationId: '1',
        userId: '2',
        evmWalletAddress: `0x${'a'.repeat(40)}`,
        evmWalletVerified: true,
        updatedAt: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
      },
    ]);
  });

  test('a column that is always NULL is no column of bytes', async () => {
    const yaml = `entities: {profiles: {query: "SELECT 1 AS organizationId, 2 AS userId, NULL AS username, NULL AS avatar", key: [userId]}}`;
    expect(await recordsBy(url, yaml)).toEqual([{ organizationId: '1', userId: '2' }]);
  });

  test.each([
    ['not UTF-8', "CONVERT(X'636166e9' USING utf8mb4)", 'Invalid utf8mb4 character string: …'],
    [
      'too long',
      "REPEAT('x', 17000000)",
      'Result of repeat() was larger than max_allowed_packet (16777216) - truncated',
    ],
    ['no number', "CAST('it''s 7' AS INT)", 'Truncated incorrect INTEGER value: …'],
  ])('a value that the server changes, since it is %s, is a warning', async (_, value, reason) => {
    const yaml = `entities: {profiles: {query: "SELECT 1 AS organizationId, 2 AS userId, ${value} AS username", key: [userId]}}`;
    const warnings = await withSource(url, yaml, async (source) => {
      const all: unknown[] = [];
      for await (const batch of source.read('profiles', { size: 500 })) all.push(...(batch.warnings ?? []));
      return all;
    });
    expect(warnings).toEqual([
      `the database warns (${reason}): check that the query changes and loses no value`,
    ]);
  });

  test('rows older than a given time can be left out by the database; rows without a time stay', async () => {
    await runMariadb(
      url,
      'CREATE TABLE aged (id int, changed timestamp(3) NULL)',
      'INSERT INTO aged SELECT seq, IF(seq < 9, FROM_UNIXTIME(seq), NULL) FROM seq_1_to_10',
    );
    const yaml = `entities: {profiles: {query: "SELECT 'a' AS organizationId, id AS userId, changed AS updatedAt FROM aged", key: [userId]}}`;
    const rows = await recordsBy(url, yaml, { since: 7000 });
    expect(rows.map((row) => (row as { userId: string }).userId)).toEqual(['7', '8', '9', '10']);
  });

  test.each([
    ['a TIMESTAMP', 'p.changed'],
    ['a DATETIME', 'UNIX_TIMESTAMP(p.local) * 1000'],
    ['joined tables', 'UNIX_TIMESTAMP(GREATEST(p.changed, COALESCE(a.changed, p.changed))) * 1000'],
  ])("the runbook's updatedAt of %s is right, and lets the database leave rows out", async (_, updatedAt) => {
    await runMariadb(
      url,
      "SET time_zone = '+00:00'",
      'CREATE TABLE IF NOT EXISTS dated (id int PRIMARY KEY, changed timestamp(3) NULL, local datetime(3))',
      'CREATE TABLE IF NOT EXISTS avatars (id int PRIMARY KEY, changed timestamp(3) NULL)',
      "REPLACE INTO dated VALUES (1, '2026-01-01 00:00:00', '2026-01-01 00:00:00'), (2, '2026-01-02 03:04:05.678', '2026-01-02 03:04:05.678')",
    );
    const query = `SELECT 'a' AS organizationId, p.id AS userId, ${updatedAt} AS updatedAt FROM dated p LEFT JOIN avatars a ON a.id = p.id`;
    const time = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
    expect(await recordsBy(url, mappingOf(query), { since: time })).toEqual([
      { organizationId: 'a', userId: '2', updatedAt: time },
    ]);
  });

  test("a server's limit on the rows of a SELECT leaves out none", async () => {
    await runMariadb(server().url(''), 'SET GLOBAL sql_select_limit = 3');
    try {
      const query = "SELECT 'a' AS organizationId, seq AS userId FROM seq_1_to_10";
      expect(await recordsBy(url, mappingOf(query))).toHaveLength(10);
    } finally {
      await runMariadb(server().url(''), 'SET GLOBAL sql_select_limit = DEFAULT');
    }
  });

  const follow = ["CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1", 'START SLAVE'];
  test.each([
    ['may only be read', ['SET GLOBAL read_only = 1'], ['SET GLOBAL read_only = 0']],
    ['may be written to', follow, ['STOP SLAVE', 'RESET SLAVE ALL']],
  ])(
    'a replica that %s does not know the transactions of its primary: nothing is settled, and it may lag',
    async (_, begin, end) => {
      const yaml = 'entities: {profiles: {query: "SELECT 1 AS organizationId, 2 AS userId", key: [userId]}}';
      const ages = async () =>
        await withSource(url, yaml, ({ settledUntil, mayLag }) =>
          Promise.resolve({ isSettled: settledUntil > 0, mayLag }),
        );
      await runMariadb(server().url(''), ...begin);
      try {
        expect(await ages()).toEqual({ isSettled: false, mayLag: true });
      } finally {
        await runMariadb(server().url(''), ...end);
      }
      expect(await ages()).toEqual({ isSettled: true, mayLag: false });
    },
  );

  test("a server's limits on idle transactions do not bind the reader", async () => {
    const limits = ['idle_transaction_timeout', 'idle_readonly_transaction_timeout'];
    for (const limit of limits) await runMariadb(server().url(''), `SET GLOBAL ${limit} = 60`);
    try {
      const query = `SELECT @@${limits[0]} AS organizationId, @@${limits[1]} AS userId`;
      expect(await recordsBy(url, mappingOf(query))).toEqual([{ organizationId: '0', userId: '0' }]);
    } finally {
      for (const limit of limits) await runMariadb(server().url(''), `SET GLOBAL ${limit} = DEFAULT`);
    }
  });

  test.each([
    'ssl=true',
    'ssl={"rejectUnauthorized":true}',
    'tls=yes',
    'sslmode=verify-full',
    'ssl-mode=VERIFY_IDENTITY',
    'ssl-mode=REQUIRED',
  ])('with %s, never connects without TLS', async (parameter) => {
    expect(await messageOf(() => recordsBy(`${url}?${parameter}`, mappingOf('SELECT 1')))).toMatch(
      /cannot connect to [^ ]* over TLS \(HANDSHAKE_NO_SSL_SUPPORT\)/,
    );
  });

  /** The URL for another user, who has no password. */
  const urlOf = (username: string): URL => Object.assign(new URL(url), { username, password: '' });

  test('a connection that the server refuses is reported with its reason', async () => {
    await runMariadb(server().url(''), "CREATE USER locked@'127.0.0.1' ACCOUNT LOCK");
    const locked = urlOf('locked');
    expect(await messageOf(() => recordsBy(locked.href, mappingOf('SELECT 1')))).toBe(
      `SourceError: mysql://locked@${locked.host}/typed refuses the connection (Access denied, this account is locked): correct this on the server, or in the URL, where ?sslmode=verify-full asks for TLS`,
    );
  });

  test('a wrong password is reported in one line that shows neither it nor the right one', async () => {
    const wrong = new URL(url);
    wrong.password = 'top-secret';
    expect(await messageOf(() => recordsBy(wrong.href, mappingOf('SELECT 1')))).toBe(
      `SourceError: mysql://root@${wrong.host}/typed refuses the user or password: check the user in the URL, and SOURCE_PASSWORD or SOURCE_PASSWORD_FILE; if the server requires TLS, add ?sslmode=verify-full to the URL`,
    );
  });

  test('a database that the user may not use is told from a wrong password', async () => {
    await runMariadb(server().url(''), "CREATE USER outsider@'127.0.0.1'");
    const elsewhere = urlOf('outsider');
    for (const database of ['typed', 'nowhere']) {
      elsewhere.pathname = database;
      expect(await messageOf(() => recordsBy(elsewhere.href, mappingOf('SELECT 1')))).toBe(
        `SourceError: mysql://outsider@${elsewhere.host}/${database}: there is no such database, or the user has no rights to it: check the URL's path and the user's rights`,
      );
    }
  });

  test('a view can be read by a user who may not explain it; how much of it is read is unknown until the end', async () => {
    await runMariadb(
      url,
      'CREATE TABLE behind (id int PRIMARY KEY)',
      'INSERT INTO behind SELECT seq FROM seq_1_to_10',
      'CREATE VIEW shown AS SELECT id FROM behind',
      "CREATE USER viewer@'127.0.0.1'",
      "GRANT SELECT ON typed.shown TO viewer@'127.0.0.1'",
    );
    const query = "SELECT 'a' AS organizationId, id AS userId FROM shown";
    const { counts, progress } = await withSource(urlOf('viewer').href, mappingOf(query), (source) =>
      readRows(source, 'profiles', { size: 5 }),
    );
    expect({ counts, progress }).toEqual({ counts: [5, 10, 10], progress: [0, 0, 1] });
  });

  test('closing waits for no answer, also to whether the key is unique', async () => {
    // Only once both rows have been read does it take minutes to look at one more.
    const wait = 'SLEEP(IF((@seen := IFNULL(@seen, 0) + 1) > 2, 120, 0))';
    const query = `SELECT 'a' AS organizationId, seq AS userId, 1 AS k FROM seq_1_to_2 WHERE ${wait} = 0`;
    const yaml = mappingOf(query, 'k');
    const source = await openSource(url, parseMapping(yaml, 'mapping.yaml'));
    let read = 0;
    const interrupt = new AbortController();
    for await (const { rows } of source.read('profiles', { size: 500, signal: interrupt.signal })) {
      read += rows.length;
      if (read === 2) setTimeout(() => interrupt.abort(), 500);
    }
    const closing = performance.now();
    await source.close();
    expect(performance.now() - closing).toBeLessThan(60_000);
    expect(read).toBe(2);
  });

  test('a lost connection is reported in one line with the remedy', async () => {
    const query = 'SELECT seq AS organizationId, seq AS userId FROM seq_1_to_1000000';
    const killOthers =
      "BEGIN NOT ATOMIC DECLARE other BIGINT; SELECT MAX(id) INTO other FROM information_schema.processlist WHERE db = 'typed' AND id <> CONNECTION_ID(); IF other IS NOT NULL THEN KILL other; END IF; END";
    const said = await messageOf(() =>
      withSource(url, mappingOf(query), async (source) => {
        let isKilled = false;
        for await (const { rows } of source.read('profiles', { size: 500 })) {
          if (rows.length > 0 && !isKilled) await runMariadb(server().url(''), killOthers);
          isKilled = true;
        }
      }),
    );
    expect(said).toMatch(
      /^SourceError: lost the connection to mysql:\/\/root@[^ ]* \([^)]*\): run the same command again/,
    );
  });
});
