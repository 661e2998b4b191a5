import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, Socket, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { parseMapping } from '../../../../src/migration/sources/mapping.ts';
import { openSource } from '../../../../src/migration/sources/open.ts';
import type { Source } from '../../../../src/migration/sources/source.ts';
import { hashApiKey } from '../../../../src/redis/keys.ts';
import type { PrivateServer } from '../../../support/servers/private-server.ts';
import { until } from '../../../support/until.ts';
import { createTool, ended, newFolder } from '../../../support/tools/migrate.ts';
import { mappingOf, messageOf, readRecords, readRows, recordsBy } from '../reading.ts';

/** What differs between the databases, for the behaviour that must not. */
export interface DatabaseUnderTest {
  start: () => Promise<PrivateServer>;
  /** The database that exists from the start. */
  main: string;
  run: (url: string, ...statements: readonly string[]) => Promise<void>;
  quote: (name: string) => string;
  /** A query whose single column n holds the numbers 1 to count. */
  numbers: (count: number) => string;
  /** An expression that takes a minute. */
  slow: string;
  /** Whether it is being evaluated. */
  isSlow: (url: string) => Promise<boolean>;
  /** A statement that keeps others from reading a table. */
  lock: (table: string) => string;
  /** Whether somebody waits for it to end. */
  isLockAwaited: (url: string) => Promise<boolean>;
  /** A type for 32 bytes, and a value of it. */
  bytes: string;
  byteLiteral: (hex: string) => string;
  /** Runs a statement and leaves its transaction open until the function it gives is called. */
  openTransaction: (url: string, statement: string) => Promise<() => Promise<void>>;
}

function mapped(column: string): string {
  const query = 'SELECT org, id, 1 AS other FROM many';
  return `entities: {profiles: {query: '${query}', key: [org, id], fields: {organizationId: org, userId: ${column}}}}`;
}

/** The behaviour every database source shows. */
export function behavesAsDatabase(under: DatabaseUnderTest): () => PrivateServer {
  let server: PrivateServer;
  let url: string;
  const opened: Source[] = [];
  const open = async (yaml: string): Promise<Source> => {
    const source = await openSource(url, parseMapping(yaml, 'mapping.yaml'));
    opened.push(source);
    return source;
  };
  const organization = under.quote('organizationId');
  const user = under.quote('userId');

  beforeAll(async () => {
    server = await under.start();
    await under.run(server.url(under.main), 'CREATE DATABASE legacy');
    url = server.url('legacy');
    await under.run(
      url,
      'CREATE TABLE many (org varchar(20) NOT NULL, id bigint NOT NULL, PRIMARY KEY (org, id))',
    );
    await under.run(
      url,
      `INSERT INTO many SELECT CONCAT('org', n % 3), 9007199254740000 + n FROM (${under.numbers(12_001)}) AS numbers`,
    );
  });
  afterEach(async () => {
    for (const source of opened.splice(0)) await source.close();
  });
  afterAll(async () => {
    await server?.stop();
  });

  const many = mappingOf(`SELECT org AS ${organization}, id AS ${user} FROM many`, 'organizationId, userId');

  test('every row comes once, in the same order each time, ids beyond 2^53 with every digit', async () => {
    const source = await open(many);
    const { rows, progress } = await readRows(source, 'profiles', { size: 700 });
    const ids = rows.map(
      ({ record }) =>
        `${(record as Record<string, string>)['organizationId']} ${(record as Record<string, string>)['userId']}`,
    );
    expect(new Set(ids).size).toBe(12_001);
    expect(ids).toContain('org0 9007199254740993');
    expect(rows.map(({ at }) => at)).toContain('profiles row (org0, 9007199254740003)');
    expect(new Set(rows.map(({ at }) => at)).size).toBe(12_001);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
    expect(progress.at(-1)).toBe(1);
    expect((await readRows(source, 'profiles')).rows).toEqual(rows);
  });

  test('wide rows come in batches bounded by bytes', async () => {
    const query = `SELECT org AS ${organization}, id AS ${user}, REPEAT('x', 131072) AS ${under.quote('profilePictureUrl')} FROM many WHERE id < 9007199254740000 + 301`;
    const source = await open(mappingOf(query, 'organizationId, userId'));
    let rows = 0;
    for await (const batch of source.read('profiles', { size: 500 })) {
      expect(batch.rows.length).toBeLessThanOrEqual(2);
      rows += batch.rows.length;
    }
    expect(rows).toBe(300);
  });

  test('a row longer than 1 MiB is invalid, as it is in a file, so that an export can be read back', async () => {
    const picture = `CASE id - 9007199254740000 WHEN 1 THEN REPEAT('x', 1048000) WHEN 2 THEN REPEAT('x', 1049000) ELSE REPEAT('€', 350000) END`;
    const query = `SELECT 'a' AS ${organization}, id AS ${user}, ${picture} AS ${under.quote('profilePictureUrl')} FROM many WHERE id < 9007199254740004 ORDER BY id`;
    expect(await recordsBy(url, mappingOf(query))).toEqual([
      expect.objectContaining({ userId: '9007199254740001' }),
      'is longer than 1 MiB',
      'is longer than 1 MiB',
    ]);
  });

  test('one organization can be read alone', async () => {
    const { rows } = await readRows(await open(many), 'profiles', { organizationId: 'org1' });
    expect(rows).toHaveLength(4001);
  });

  test('rows that appear, change or vanish while reading are not seen: all entities come from one snapshot', async () => {
    await under.run(
      url,
      'CREATE TABLE moving (org varchar(20) NOT NULL, name varchar(50) NOT NULL, PRIMARY KEY (org, name))',
    );
    await under.run(url, "INSERT INTO moving VALUES ('a', 'one'), ('a', 'two')");
    const source = await open(`entities:
  profiles: {query: 'SELECT org AS ${organization}, name AS ${user} FROM moving', key: [organizationId, userId]}
  denylist: {query: 'SELECT org AS ${organization}, name AS username FROM moving', key: [organizationId, username]}`);
    await under.run(url, "INSERT INTO moving VALUES ('a', 'three')", "DELETE FROM moving WHERE name = 'one'");
    expect(await readRecords(source, 'profiles')).toEqual([
      { organizationId: 'a', userId: 'one' },
      { organizationId: 'a', userId: 'two' },
    ]);
    expect(await readRecords(source, 'denylist')).toHaveLength(2);
    expect(
      await readRecords(
        await open(
          `entities: {denylist: {query: 'SELECT org AS ${organization}, name AS username FROM moving', key: [username]}}`,
        ),
        'denylist',
      ),
    ).toHaveLength(2);
  });

  test('the source is only read: a query that writes is refused', async () => {
    expect(await messageOf(() => open(mappingOf('DELETE FROM many', 'a')))).toBe(
      'SourceError: entities.profiles.query must be a SELECT',
    );
    expect(await messageOf(() => open(mappingOf('SELECT 1; DROP TABLE many', 'a')))).toMatch(
      /must be one SELECT/,
    );
  });

  test('a trailing semicolon, comments and joins are fine, and key columns need not be fields', async () => {
    const query = `-- the legacy users; all of them
      SELECT m.id, 'a;b' AS ${organization}, /* ; */ m.id AS ${user}
      FROM many m JOIN many n ON n.org = m.org AND n.id = m.id WHERE m.id < 9007199254740003 ; -- done
      /* really */ ;`;
    expect(await recordsBy(url, mappingOf(query, 'id'))).toEqual([
      { organizationId: 'a;b', userId: '9007199254740001' },
      { organizationId: 'a;b', userId: '9007199254740002' },
    ]);
  });

  test('with fields, unmapped columns are ignored, and a mapped column that is missing is named', async () => {
    expect(await recordsBy(url, mapped('id'), { organizationId: 'org2' })).toHaveLength(4000);
    expect(await messageOf(() => open(mapped('ident')))).toBe(
      'SourceError: entities.profiles.fields.userId: the query has no column "ident"',
    );
  });

  test.each([
    [
      'a key that is not a column',
      `SELECT org AS ${organization}, id AS ${user} FROM many`,
      'id',
      'entities.profiles.key: the query has no column "id"',
    ],
    [
      'a column no record has',
      `SELECT org AS ${organization}, id AS ${user}, 1 AS nickname FROM many`,
      'userId',
      'entities.profiles.query: the query has an unknown field "nickname"',
    ],
    [
      'a missing required field',
      `SELECT org AS ${organization} FROM many`,
      'organizationId',
      'entities.profiles.query: the query has no column userId',
    ],
    ['a table that is not there', 'SELECT * FROM nowhere', 'a', /^entities\.profiles\.query: .*nowhere/],
    ['a column that is not there', 'SELECT nothing FROM many', 'a', /^entities\.profiles\.query: .*nothing/],
    ['SQL that is none', 'SELECT FROM WHERE', 'a', /^entities\.profiles\.query: .*syntax/],
  ])('opening names %s', async (_, query, key, message) => {
    const said = await messageOf(() => open(mappingOf(query, key)));
    expect(said.replace('SourceError: ', '')).toEqual(
      typeof message === 'string' ? message : expect.stringMatching(message),
    );
    expect(said).not.toContain('\n');
    expect(said).not.toContain('secret');
  });

  test('a key that is not unique is named with the value that comes twice, however far apart', async () => {
    const shared = mappingOf(`SELECT org AS ${organization}, id AS ${user} FROM many`, 'organizationId');
    expect(await messageOf(() => recordsBy(url, shared))).toMatch(
      /^SourceError: entities\.profiles\.key: \(organizationId\) is not unique, \(org\d\) comes more than once: add a column$/,
    );
    await under.run(
      url,
      'CREATE TABLE doubled (id int NOT NULL)',
      'INSERT INTO doubled VALUES (4711)',
      `INSERT INTO doubled SELECT n FROM (${under.numbers(5000)}) AS numbers`,
    );
    const single = mappingOf(`SELECT 'a' AS ${organization}, id AS ${user} FROM doubled`);
    expect(await messageOf(() => recordsBy(url, single))).toMatch(/\(4711\) comes more than once/);
  });

  test('a key that contains the identity is not unique where an identity comes twice, and is named', async () => {
    await under.run(
      url,
      'CREATE TABLE joined (org varchar(20) NOT NULL, id int NOT NULL)',
      `INSERT INTO joined SELECT 'a', n FROM (${under.numbers(2000)}) AS numbers`,
      "INSERT INTO joined VALUES ('a', 7), ('b', 8)",
    );
    const mapping = join(newFolder(), 'mapping.yaml');
    const query = `SELECT org AS ${organization}, id AS ${user} FROM joined`;
    writeFileSync(mapping, mappingOf(query, 'userId, organizationId'));
    expect(await createTool().text('apply', '--source', url, '--mapping', mapping)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining(
        'entities.profiles.key: (userId, organizationId) is not unique, (7, a) comes more than once: add a column',
      ),
    });
  });

  test('a key that does not contain the identity is not unique, though no identity comes twice, and is named', async () => {
    const hash = under.quote('apiKeySha256');
    const query = ['a', 'b']
      .map((org) => `SELECT '${org}' AS ${organization}, '${'0'.repeat(64)}' AS ${hash}, 'admin' AS role`)
      .join(' UNION ALL ');
    const source = await open(mappingOf(query, 'apiKeySha256', 'api-keys'));
    const said = await messageOf(() => readRows(source, 'api-keys', { mayRepeat: () => false }));
    expect(said).toMatch(/\(apiKeySha256\) is not unique, \(0+\) comes more than once/);
  });

  test('a key that is null somewhere is named', async () => {
    await under.run(
      url,
      'CREATE TABLE holey (id int NOT NULL, part int)',
      'INSERT INTO holey VALUES (1, 1), (2, NULL)',
    );
    const query = `SELECT 'a' AS ${organization}, id AS ${user}, part FROM holey`;
    expect(await messageOf(() => recordsBy(url, mappingOf(query, 'userId, part')))).toBe(
      'SourceError: entities.profiles.key: (userId, part) is null in a row: choose columns that are never null',
    );
  });

  test('the blanks that fill up a CHAR are no part of an API key', async () => {
    await under.run(
      url,
      'CREATE TABLE padded (id int PRIMARY KEY, secret char(20) NOT NULL)',
      "INSERT INTO padded VALUES (1, ' a key'), (2, '')",
    );
    const query = `SELECT id, 'a' AS ${organization}, secret AS ${under.quote('apiKey')}, 'player' AS role FROM padded`;
    expect(await recordsBy(url, mappingOf(query, 'id', 'api-keys'))).toEqual([
      { organizationId: 'a', apiKeySha256: hashApiKey(' a key'), role: 'player' },
      'apiKey or apiKeySha256 is missing',
    ]);
  });

  test('bytes are refused as text, naming the cast, and taken as a SHA-256', async () => {
    await under.run(url, `CREATE TABLE hashed (id int PRIMARY KEY, bytes ${under.bytes})`);
    const of = (field: string): string => {
      const query = `SELECT id, 'a' AS ${organization}, bytes AS ${under.quote(field)}, 'player' AS role FROM hashed`;
      return mappingOf(query, 'id', 'api-keys');
    };
    expect(await messageOf(() => open(of('apiKey')))).toMatch(
      /^SourceError: entities\.api-keys\.query: apiKey holds bytes, not text: write it as con.*\(.*UTF8/i,
    );
    await under.run(url, `INSERT INTO hashed VALUES (1, ${under.byteLiteral('ab'.repeat(32))})`);
    expect(await recordsBy(url, of('apiKeySha256'))).toEqual([
      { organizationId: 'a', apiKeySha256: 'ab'.repeat(32), role: 'player' },
    ]);
  });

  test('a duplicate column is named', async () => {
    const query = `SELECT 1 AS ${organization}, 2 AS ${user}, 3 AS ${user}`;
    expect(await messageOf(() => open(mappingOf(query)))).toMatch(
      /(?:has the column "userId" twice|Duplicate column name 'userId')/,
    );
  });

  test('a reader can stop early, and the source be closed', async () => {
    const source = await open(many);
    for await (const batch of source.read('profiles', { size: 10 })) {
      expect(batch.rows).toHaveLength(10);
      break;
    }
    await source.close();
    opened.pop();
  });

  test('a connection that has died without a word is noticed, since it is probed while it is silent', async () => {
    const probing = jest.spyOn(Socket.prototype, 'setKeepAlive');
    await open(many);
    expect(probing).toHaveBeenCalledWith(true, 60_000);
    probing.mockRestore();
  });

  test('changes of a transaction that was open when reading began do not count as settled', async () => {
    await under.run(url, 'CREATE TABLE late (id int PRIMARY KEY)');
    const finish = await under.openTransaction(url, 'INSERT INTO late VALUES (1)');
    const started = Date.now();
    try {
      expect((await open(many)).settledUntil).toBeLessThanOrEqual(started);
    } finally {
      await finish();
    }
    expect((await open(many)).settledUntil).toBeGreaterThan(started);
  });

  test('API keys must not be the key of their rows, under any name: reports would show them', async () => {
    await under.run(
      url,
      'CREATE TABLE api_keys (secret varchar(50) PRIMARY KEY)',
      "INSERT INTO api_keys VALUES ('very-private')",
    );
    const [key, client] = [under.quote('apiKey'), under.quote('client')];
    const hash = (name: string): string => `${name} AS ${under.quote('apiKeySha256')}`;
    const bytes = under.byteLiteral(Buffer.from('very-private').toString('hex'));
    for (const [by, columns] of [
      ['apiKey', `secret AS ${key}`],
      ['client', `secret AS ${key}, secret AS ${client}`],
      ['other', `secret AS ${key}, CONCAT('acme:', secret) AS other`],
      ['other', `secret AS ${key}, ${bytes} AS other`],
      ['secret', `secret, ${hash(`'${hashApiKey('very-private').toUpperCase()}'`)}`],
      ['secret', `secret, ${hash(under.byteLiteral(hashApiKey('very-private')))}`],
      ['secret', `secret, ${hash(`'0x${hashApiKey('very-private')}'`)}`],
      ['other', `${bytes} AS other, ${hash(`'${hashApiKey('very-private')}'`)}`],
    ] as const) {
      const query = `SELECT 'a' AS ${organization}, ${columns}, 'player' AS role FROM api_keys`;
      const source = await open(mappingOf(query, by, 'api-keys'));
      const said = await messageOf(() => readRows(source, 'api-keys'));
      expect([columns, said]).toEqual([
        columns,
        "SourceError: entities.api-keys.key holds API keys, and reports show a row's key: identify the rows by another column",
      ]);
    }
  });

  test('an id, or the hash of an API key, may be the key of its row, though a short API key is part of it', async () => {
    const [key, hash] = [under.quote('apiKey'), under.quote('apiKeySha256')];
    const query = `SELECT 'a' AS ${organization}, 17 AS id, '7' AS ${key}, '${hashApiKey('7')}' AS ${hash}, 'player' AS role`;
    expect(await recordsBy(url, mappingOf(query, 'id, apiKeySha256', 'api-keys'))).toEqual([
      { organizationId: 'a', apiKeySha256: hashApiKey('7'), role: 'player' },
    ]);
  });

  test('a failed connection is reported in one line with the remedy, without the password', async () => {
    const nobody = new URL(url);
    nobody.port = '1';
    nobody.password = 'top-secret';
    const mapping = parseMapping(many, 'mapping.yaml');
    const said = await messageOf(() => openSource(nobody.href, mapping));
    expect(said).toMatch(
      /^SourceError: cannot reach .*@127\.0\.0\.1:1\/legacy \(ECONNREFUSED\): check the host and port/,
    );
    expect(said).not.toContain('top-secret');
    const encrypted = await messageOf(() => openSource(`${url}?ssl=true`, mapping));
    expect(encrypted).toMatch(
      /^SourceError: cannot connect to .*\/legacy over TLS \([^)]+\): check that the server offers it/,
    );
    const elsewhere = await messageOf(() => openSource(server.url('nowhere'), mapping));
    expect(elsewhere).toMatch(/nowhere: there is no such database/);
  });

  test('a database that cannot be reached is a failure of the command, not wrong usage', async () => {
    const nobody = new URL(url);
    nobody.port = '1';
    const mapping = join(newFolder(), 'mapping.yaml');
    writeFileSync(mapping, many);
    expect(await createTool().text('plan', '--source', nobody.href, '--mapping', mapping)).toMatchObject({
      exitCode: 1,
      err: expect.stringMatching(/^error: cannot reach .*\(ECONNREFUSED\)[^\n]*\n$/),
    });
  });

  test('Ctrl-C ends a command while the database has yet to answer', async () => {
    const query = `SELECT n AS ${organization}, n AS ${user}, ${under.slow} AS username FROM (${under.numbers(9)}) AS numbers`;
    const mapping = join(newFolder(), 'mapping.yaml');
    writeFileSync(mapping, mappingOf(query));
    const child = createTool().start('plan', '--source', url, '--mapping', mapping);
    const end = ended(child);
    await until(async () => await under.isSlow(url));
    const interruptedAt = performance.now();
    child.kill('SIGINT');
    expect(await end).toMatchObject({ code: 130, err: expect.stringContaining('interrupted') });
    expect(performance.now() - interruptedAt).toBeLessThan(20_000);
  });

  test('Ctrl-C does not wait for a server that accepts a connection and says nothing', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const interrupt = new AbortController();
    const nobody = new URL(url);
    nobody.port = String((silent.address() as AddressInfo).port);
    const opening = messageOf(() =>
      openSource(nobody.href, parseMapping(many, 'mapping.yaml'), {}, interrupt.signal),
    );
    await once(silent, 'connection');
    silent.close();
    const interruptedAt = performance.now();
    interrupt.abort();
    expect(await opening).toMatch(/cannot reach/);
    expect(performance.now() - interruptedAt).toBeLessThan(5000);
  });

  test('Ctrl-C ends a command that waits for a locked table while it checks the queries', async () => {
    await under.run(url, 'CREATE TABLE locked (org int, id int)');
    const finish = await under.openTransaction(url, under.lock('locked'));
    const interrupt = new AbortController();
    const query = `SELECT org AS ${organization}, id AS ${user} FROM locked`;
    const mapping = parseMapping(mappingOf(query), 'mapping.yaml');
    try {
      const opening = messageOf(() => openSource(url, mapping, {}, interrupt.signal));
      await until(async () => await under.isLockAwaited(url));
      interrupt.abort();
      expect(await opening).toMatch(/lost the connection/);
    } finally {
      await finish();
    }
  });

  return () => server;
}
