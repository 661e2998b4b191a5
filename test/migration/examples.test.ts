import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { describeWithMariadb, describeWithPostgres } from '../support/servers/describe-with.ts';
import { loadTimeZone, runMariadb, startMariadb } from '../support/servers/mariadb.ts';
import { runPostgres, startPostgres } from '../support/servers/postgres.ts';
import type { PrivateServer } from '../support/servers/private-server.ts';
import { LEGACY_TABLES } from './sources/databases/legacy-tables.ts';
import { createTool, newFolder, type Call, type Tool } from '../support/tools/migrate.ts';

const runbook = readFileSync('src/migration/README.md', 'utf8');

/** Runs the runbook's worked example for a source like this, with the real source in its place. */
async function runExample(tool: Tool, shown: string, source: string): Promise<Call[]> {
  const commands = [...runbook.matchAll(/^profile-bridge migrate (.*)$/gm)].map(([, words = '']) => words);
  const calls: Call[] = [];
  for (const words of commands.filter((line) => line.includes(`--source ${shown}`))) {
    calls.push(await tool.json(...words.split(' ').map((word) => (word.startsWith(shown) ? source : word))));
  }
  return calls;
}

/** The runbook's samples in this language. */
function blocks(language: string): string[] {
  return [...runbook.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, of, text = '']) =>
    of === language ? [text] : [],
  );
}

/** The runbook's expressions for `updatedAt`, each with what it is for and the type of its columns. */
function updatedAts(database: 'PostgreSQL' | 'MySQL', usualType: string): [string, string, string][] {
  const rows = runbook.matchAll(/^\| (\w+), (.*?) +\| `(.*?)`/gm);
  return [...rows]
    .filter(([, of]) => of === database)
    .map(([, , source = '', updatedAt = '']) => [
      source,
      updatedAt,
      /`(\w+)`/.exec(source)?.[1] ?? usualType,
    ]);
}

/** Profiles with avatars in a table of their own, and what is joined to them. */
const joined = (updatedAt: string, quote: string): string =>
  `SELECT 'acme' AS organizationId, p.id AS userId, 'shop' AS \`avatar.datasourceId\`, 'hat' AS \`avatar.objectDefinitionId\`, a.url AS \`avatar.url\`, ${updatedAt} AS updatedAt FROM p LEFT JOIN a ON a.id = p.id`
    .replaceAll('`', quote)
    .replaceAll(/AS (\w+Id|updatedAt)/g, `AS ${quote}$1${quote}`);

/**
 * Applies, changes one row of the 100 that are read (the joined one, where there is one), and applies again: only what
 * has changed is read then, and nothing is missed.
 */
async function expectDelta(
  url: string,
  query: string,
  change: (at: string) => Promise<void>,
  hours: number,
): Promise<void> {
  const mapping = join(newFolder(), 'map.yaml');
  writeFileSync(mapping, JSON.stringify({ entities: { profiles: { query, key: ['userId'] } } }));
  const tool = createTool();
  const args = ['--source', url, '--mapping', mapping, '--run', 'r'];
  const exported = async (): Promise<string> => (await tool.contents())['profiles.ndjson'] ?? '';
  const at = (day: number): string => `2026-03-0${day} 12:00:00`;
  const instant = (day: number): string => `"updatedAt":${Date.UTC(2026, 2, day, 12 - hours)}}`;

  expect(await tool.json('apply', ...args)).toMatchObject({
    exitCode: 0,
    json: { created: 100, warnings: 2 },
  });
  expect(await exported()).toContain(instant(1));
  await change(at(2));
  expect(await tool.json('apply', ...args)).toMatchObject({ json: { updated: 1 } });
  await change(at(3));
  expect(await tool.json('apply', ...args)).toMatchObject({ exitCode: 0, json: { read: 1, updated: 1 } });
  expect(await exported()).toContain(instant(3));
  expect(await tool.json('verify', ...args)).toMatchObject({ exitCode: 0 });
}

describe('the sample line of a profile', () => {
  test('is valid, and the same record as NDJSON and as CSV', async () => {
    const tool = createTool();
    const [ndjson, csv] = [newFolder(), newFolder()];
    writeFileSync(join(ndjson, 'profiles.ndjson'), blocks('ndjson')[0] ?? '');
    writeFileSync(join(csv, 'profiles.csv'), blocks('csv')[0] ?? '');
    expect(await tool.json('apply', '--source', ndjson)).toMatchObject({
      exitCode: 0,
      json: { created: 1, problems: 0 },
    });
    expect(await tool.json('verify', '--source', csv)).toMatchObject({
      exitCode: 0,
      json: { differences: 0, compared: { profiles: 1 } },
    });
  });
});

/** On a slow machine the commands show their progress. */
const nothingButProgress = expect.stringMatching(/^(.*, [\d,]+\/s.*\n)*$/);

const done = [
  { exitCode: 0, err: nothingButProgress, json: { command: 'plan', problems: 0, created: 9 } },
  { exitCode: 0, err: nothingButProgress, json: { command: 'apply', created: 9 } },
  {
    exitCode: 0,
    err: nothingButProgress,
    json: { command: 'verify', differences: 0, compared: { profiles: 2 } },
  },
];

describeWithPostgres('the worked example for PostgreSQL', () => {
  let server: PrivateServer;
  let url: string;
  const tool = (): Tool => createTool();

  beforeAll(async () => {
    server = await startPostgres();
    url = server.url('postgres');
    await runPostgres(url, ...LEGACY_TABLES.postgres);
  });

  afterAll(async () => {
    await server.stop();
  });

  test('plans, applies and verifies, and reveals no password', async () => {
    const calls = await runExample(tool(), 'postgres://', url);
    expect(calls).toMatchObject(done);
    expect(JSON.stringify(calls)).not.toContain('secret');
  });

  test.each(updatedAts('PostgreSQL', 'timestamptz'))(
    '%s: a delta by %s misses nothing',
    async (source, updatedAt, type) => {
      await runPostgres(
        url,
        'DROP TABLE IF EXISTS p, a',
        `CREATE TABLE p (id int PRIMARY KEY, updated_at ${type})`,
        `CREATE TABLE a (id int PRIMARY KEY, url text, updated_at ${type})`,
        "INSERT INTO p SELECT n, '2026-03-01 12:00:00Z' FROM generate_series(1, 100) AS n",
        "INSERT INTO a SELECT n, 'https://x.example/1', '2026-03-01 12:00:00Z' FROM generate_series(1, 50) AS n",
      );
      const changed = source.includes('joined') ? 'a' : 'p';
      const change = async (at: string): Promise<void> =>
        await runPostgres(
          url,
          `UPDATE a SET url = 'https://x.example/${at.slice(9, 10)}' WHERE id = 7`,
          `UPDATE ${changed} SET updated_at = '${at}Z' WHERE id = 7`,
        );
      await expectDelta(url, joined(updatedAt, '"'), change, 0);
    },
  );

  test('asks only for changed rows in a later apply, and misses none with a shared timestamp', async () => {
    await runPostgres(
      url,
      'CREATE TABLE players (id int PRIMARY KEY, name text NULL, changed timestamptz NULL)',
      "INSERT INTO players SELECT n, 'p' || n, '2026-03-01 12:00:00+00' FROM generate_series(1, 3000) AS n",
    );
    const mapping = join(newFolder(), 'map.yaml');
    const query = `SELECT 'acme' AS "organizationId", id AS "userId", name AS "username", changed AS "updatedAt" FROM players`;
    writeFileSync(mapping, JSON.stringify({ entities: { profiles: { query, key: ['userId'] } } }));
    const own = tool();
    const apply = async (...more: string[]): Promise<Call> =>
      await own.json('apply', '--source', url, '--mapping', mapping, ...more);
    expect(await apply()).toMatchObject({ exitCode: 0, json: { created: 3000 } });
    await runPostgres(
      url,
      // Within the overlap, at the very same instant.
      "UPDATE players SET name = 'q' || id WHERE id % 1000 = 5",
      // Within it, by a transaction that began four minutes before the newest change.
      "INSERT INTO players VALUES (3001, 'late', '2026-03-01 11:56:00+00')",
      // Two names that change hands.
      "UPDATE players SET name = CASE id WHEN 1 THEN 'p2' ELSE 'p1' END, changed = '2026-03-02 12:00:00+00' WHERE id IN (1, 2)",
    );
    expect(await apply()).toMatchObject({
      exitCode: 0,
      json: { read: 3001, created: 1, updated: 5, conflicts: 0 },
    });
    // The others now lie before the high-water mark and its overlap.
    await runPostgres(url, "UPDATE players SET name = NULL, changed = '2026-03-02 12:00:00+00' WHERE id = 3");
    expect(await apply()).toMatchObject({ exitCode: 0, json: { read: 3, updated: 1, unchanged: 2 } });
    expect(await own.json('verify', '--source', url, '--mapping', mapping)).toMatchObject({ exitCode: 0 });

    await runPostgres(url, 'DELETE FROM players WHERE id = 4');
    expect(await own.json('verify', '--source', url, '--mapping', mapping)).toMatchObject({
      exitCode: 1,
      json: { extra: 1 },
    });
    expect(await apply('--prune')).toMatchObject({
      exitCode: 0,
      json: { read: 3000, pruned: { profiles: 1 } },
    });
    expect(await own.json('verify', '--source', url, '--mapping', mapping)).toMatchObject({ exitCode: 0 });
  });
});

describeWithMariadb('the worked example for MySQL', () => {
  let server: PrivateServer;

  beforeAll(async () => {
    server = await startMariadb();
    await runMariadb(server.url('mysql'), 'CREATE DATABASE legacy CHARACTER SET utf8mb4');
    await loadTimeZone(server, 'Europe/Berlin');
  });

  test.each(updatedAts('MySQL', 'TIMESTAMP'))(
    '%s: a delta by %s misses nothing',
    async (source, updatedAt, type) => {
      const url = server.url('legacy');
      const run = async (...statements: string[]): Promise<void> =>
        await runMariadb(url, "SET time_zone = '+00:00'", ...statements);
      await run(
        'DROP TABLE IF EXISTS p, a',
        `CREATE TABLE p (id int PRIMARY KEY, updated_at ${type} NULL)`,
        `CREATE TABLE a (id int PRIMARY KEY, url text, updated_at ${type} NULL)`,
        "INSERT INTO p SELECT seq, '2026-03-01 12:00:00' FROM seq_1_to_100",
        "INSERT INTO a SELECT seq, 'https://x.example/1', '2026-03-01 12:00:00' FROM seq_1_to_50",
      );
      const changed = source.includes('joined') ? 'a' : 'p';
      const change = async (at: string): Promise<void> =>
        await run(
          `UPDATE a SET url = 'https://x.example/${at.slice(9, 10)}' WHERE id = 7`,
          `UPDATE ${changed} SET updated_at = '${at}' WHERE id = 7`,
        );
      await expectDelta(url, joined(updatedAt, '`'), change, source.includes('another zone') ? 1 : 0);
    },
  );

  afterAll(async () => {
    await server.stop();
  });

  test('plans, applies and verifies, and reveals no password', async () => {
    const url = server.url('legacy');
    await runMariadb(url, ...LEGACY_TABLES.mariadb);
    // The password is given beside the URL here, as it should be outside of tests.
    const bare = new URL(url);
    bare.password = '';
    const tool = createTool();
    tool.env['SOURCE_PASSWORD'] = decodeURIComponent(new URL(url).password);
    const calls = await runExample(tool, 'mysql://', bare.href);
    expect(calls).toMatchObject(done);
    expect(JSON.stringify(calls)).not.toContain('secret');
  });
});

describe('the worked example for mongoexport', () => {
  test('plans, applies and verifies', async () => {
    const folder = join(newFolder(), 'legacy');
    mkdirSync(folder);
    const line = blocks('ndjson')[1] ?? '';
    const other = line.replace('65a1f0c2', '65a1f0c3').replace('"ada"', '"bob"').replace('{', '{"more":1,');
    writeFileSync(join(folder, 'profiles.ndjson'), line + other);
    expect(await runExample(createTool(), 'legacy', folder)).toMatchObject([
      { exitCode: 0, json: { command: 'plan', created: 2 } },
      { exitCode: 0, json: { command: 'apply', created: 2 } },
      { exitCode: 0, json: { command: 'verify', differences: 0 } },
    ]);
  });
});
