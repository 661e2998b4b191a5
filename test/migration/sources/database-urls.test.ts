import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openSource } from '../../../src/migration/sources/open.ts';
import { isDatabaseUrl, parseDatabaseUrl } from '../../../src/migration/sources/database-urls.ts';
import { createTool, newFolder, writeSource } from '../../support/tools/migrate.ts';
import { messageOf } from './reading.ts';

describe('a source URL', () => {
  test.each([
    [
      'postgres://reader:top-secret@db.example.com:5433/game',
      'postgresql',
      'postgres://reader@db.example.com:5433/game',
    ],
    ['postgresql://db/game?password=top-secret', 'postgresql', 'postgresql://db/game'],
    ['MySQL://reader:top-secret%40%2F@[::1]/game', 'mysql', 'mysql://reader@[::1]/game'],
    ['mariadb://:top-secret@db/game#x', 'mysql', 'mariadb://db/game'],
    ['postgres:///game?host=/run/a&password=top-secret', 'postgresql', 'postgres:///game?host=/run/a'],
    ['mysql://reader@x/game?ssl=1&socketPath=/run/b', 'mysql', 'mysql://reader@x/game?socketPath=/run/b'],
  ])('%j is shown without its password', (url, dialect, shown) => {
    expect(parseDatabaseUrl(url, {})).toMatchObject({ dialect, shown });
  });

  test.each([
    'postgres://reader:top/secret@db/game',
    'postgres://reader:12/secret@db/game',
    'postgres://reader:12?secret@db/game',
    'postgres://reader:12#secret@db/game',
    'postgres://reader@db/game?password=12&secret',
    'mysql://reader:secret@db:notaport/game',
    'mysql://reader:100%secret@db/game',
    'postgres://reader@db:99999/game',
    'postgres://reader@/game?host=/run/postgresql',
  ])('%j, which is not valid, is refused without showing any of it', async (url) => {
    const said = await messageOf(() => parseDatabaseUrl(url, {}));
    expect(said).toBe(
      'SourceError: the source URL is not valid: check its host and port, and percent-encode special characters in its user and password',
    );
  });

  test.each([
    'mysql://reader@db/game?sslMode=VERIFY_CA',
    'mysql://reader@db/game?ssl-ca=/etc/ca.pem',
    'mariadb://reader@db/game?useSSL=true',
    'postgres://reader@db/game?ssl-mode=VERIFY_IDENTITY',
    'postgres://reader@db/game?requiressl=1',
  ])('%j, whose wish for TLS would go unheard, is refused', async (url) => {
    const [name = ''] = new URL(url).searchParams.keys();
    expect(await messageOf(() => parseDatabaseUrl(url, {}))).toMatch(
      new RegExp(
        `^SourceError: the source URL has an unknown parameter ${name}: .*for TLS, sslmode=verify-full`,
      ),
    );
  });

  test.each([
    ['mysql://reader@db/game?socket=/run/b', 'socket', 'socketPath, ssl, tls, sslmode, ssl-mode '],
    ['postgres://db/game?target_session_attrs=any', 'target_session_attrs', 'host, port, user, password, '],
  ])('%j, whose parameter would be ignored, is refused', async (url, name, known) => {
    expect(await messageOf(() => parseDatabaseUrl(url, {}))).toMatch(
      new RegExp(`the source URL has an unknown parameter ${name}: write one of ${known}.*, or remove it$`),
    );
  });

  test.each([
    'postgresql://reader@db/game?sslmode=require&channel_binding=require',
    'postgres://reader@db/game?pgbouncer=true&connection_limit=1&pool_timeout=5&connect_timeout=15',
    'postgres://reader@db/game?keepalives=1&keepalives_idle=30&keepalives_interval=9&keepalives_count=3',
    'mysql://reader@db/game?charset=utf8mb4&timezone=Z&connectionLimit=5&connectTimeout=5000',
  ])('%j, as hosting providers and other tools give it, is accepted', (url) => {
    expect(parseDatabaseUrl(url, {}).url.href).toBe(url);
  });

  test.each([
    ['postgres://reader@db/game?sslmode=prefer', 'sslmode=prefer'],
    ['postgres://reader@db/game?sslmode=verify_full', 'sslmode=verify_full'],
    ['mysql://reader@db/game?ssl-mode=REQUIERD', 'ssl-mode=REQUIERD'],
    ['mysql://reader@db/game?sslmode=', 'sslmode='],
  ])('%j, whose mode of TLS cannot be used, is refused', async (url, mode) => {
    expect(await messageOf(() => parseDatabaseUrl(url, {}))).toContain(
      `the source URL has ${mode}, which cannot be used: write ssl`,
    );
  });

  test('without a password takes it from the environment, or from a file, and shows it nowhere', async () => {
    const password = (url: string, env: NodeJS.ProcessEnv): string => {
      const parsed = parseDatabaseUrl(url, env);
      expect(parsed.shown).not.toMatch(/s3cret/);
      return decodeURIComponent(parsed.url.password);
    };
    const folder = mkdtempSync(join(tmpdir(), 'password-'));
    const file = join(folder, 'password');
    writeFileSync(file, 's3cret/@%\n');
    const [postgres, mysql] = ['postgres://reader@db/game', 'mysql://reader@db/game'];
    expect(password(postgres, { SOURCE_PASSWORD: 's3cret%2F' })).toBe('s3cret%2F');
    expect(password(postgres, { SOURCE_PASSWORD_FILE: file, PGPASSWORD: 'other' })).toBe('s3cret/@%');
    expect(password(postgres, { PGPASSWORD: 's3cret', MYSQL_PWD: 'other' })).toBe('s3cret');
    expect(password(mysql, { PGPASSWORD: 'other', MYSQL_PWD: 's3cret' })).toBe('s3cret');
    expect(password('mysql://reader:s3cret@db/game', { SOURCE_PASSWORD: 'other' })).toBe('s3cret');
    expect(await messageOf(() => parseDatabaseUrl(mysql, { SOURCE_PASSWORD_FILE: '/nowhere' }))).toBe(
      'SourceError: SOURCE_PASSWORD_FILE: /nowhere cannot be read (ENOENT); check the path and its permissions',
    );
    writeFileSync(join(folder, 'empty'), '\n');
    const empty = { SOURCE_PASSWORD_FILE: join(folder, 'empty') };
    expect(await messageOf(() => parseDatabaseUrl(mysql, empty))).toMatch(/empty is empty$/);
    const both = { SOURCE_PASSWORD: 's3cret', SOURCE_PASSWORD_FILE: file };
    expect(await messageOf(() => parseDatabaseUrl(mysql, both))).toBe(
      'SourceError: SOURCE_PASSWORD and SOURCE_PASSWORD_FILE are both set: set only one of them',
    );
  });

  test('of an unknown scheme is refused, naming those that are known', async () => {
    expect(await messageOf(() => openSource('mongodb://u:secret@db/game'))).toBe(
      'SourceError: --source cannot be a mongodb:// URL: use postgres://, postgresql://, mysql:// or mariadb://',
    );
  });

  test.each([
    'jdbc:postgresql://db/game?user=reader&password=s3cret',
    "'postgres://reader:s3cret@db/game'",
    ' postgres://reader:s3cret@db/game',
    'postgres:/reader:s3cret@db/game',
    'postgres:s3cret',
    'reader:s3cret@tcp(db:3306)/game',
    'host=db user=reader password=s3cret dbname=game',
    'Server=db;Uid=reader;Pwd=s3cret;Database=game',
  ])(
    '%j, which is neither a URL nor a path that exists, is refused without showing any of it',
    async (place) => {
      expect(await messageOf(() => openSource(place))).toBe(
        'SourceError: --source is not a folder, a file or a database URL: a URL begins with postgres:// or mysql://, without quotes or spaces (it is not shown, since it may hold a password)',
      );
      const [folder, report] = [newFolder(), join(newFolder(), 'report')];
      const mapping = join(folder, 'mapping.yaml');
      writeFileSync(mapping, 'entities: {profiles: {query: SELECT 1, key: [a]}}');
      for (const given of [
        ['--source', place, '--mapping', mapping],
        ['--source', folder, '--mapping', place],
      ]) {
        const { exitCode, out, err } = await createTool().json('plan', ...given, '--report', report);
        expect(exitCode).toBe(2);
        expect(err).toContain('it is not shown, since it may hold a password');
        expect(out + err).not.toContain('s3cret');
        expect(existsSync(report)).toBe(false);
      }
    },
  );

  test('is not taken for a path that exists, whatever that looks like', async () => {
    for (const name of ['backup@2026', 'postgres:', 'password=1']) {
      const folder = join(newFolder(), name);
      mkdirSync(folder);
      writeSource({ profiles: [{ organizationId: 'acme', userId: 'u1' }] }, folder);
      expect((await openSource(folder)).name).toBe(folder);
    }
  });

  test('whose database holds what belongs into a parameter is refused without showing it', async () => {
    expect(await messageOf(() => parseDatabaseUrl('postgres://db/game;password=s3cret', {}))).toMatch(
      /^SourceError: the source URL is not valid: /,
    );
  });

  test('needs a mapping', async () => {
    expect(await messageOf(() => openSource('postgres://u:secret@db/game'))).toBe(
      'SourceError: postgres://u@db/game needs a mapping: name the queries in a file and give it as --mapping',
    );
  });

  test('is distinguished from a path', () => {
    expect(['mysql://a', 'x://'].map(isDatabaseUrl)).toEqual([true, true]);
    expect(['legacy', './a/b', '/a//b', 'C:\\data', 'a.ndjson'].map(isDatabaseUrl)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ]);
  });
});
