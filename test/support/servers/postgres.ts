import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { placeFor, startServer } from './private-server.ts';
import type { PrivateServer } from './private-server.ts';

/** The folder of the newest PostgreSQL's programs: Debian's, or the one on the PATH. */
function findPostgres(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(':'),
  ];
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')));
}

/** The folder of PostgreSQL's programs; undefined if it is not installed. */
export const postgresPrograms = findPostgres();

/** Starts a PostgreSQL of this test file's own, superuser postgres with the password "secret". */
export async function startPostgres(): Promise<PrivateServer> {
  if (postgresPrograms === undefined) throw new Error('PostgreSQL is not installed');
  const place = await placeFor('postgres');
  const { account, folder, port } = place;
  const data = join(folder, 'data');
  const init = [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--no-locale',
    '--no-sync',
    '--no-instructions',
  ];
  execFileSync(join(postgresPrograms, 'initdb'), init, { ...account, cwd: folder, stdio: 'ignore' });
  const stop = await startServer({
    command: join(postgresPrograms, 'postgres'),
    args: [
      '-D',
      data,
      '-k',
      folder,
      '-h',
      '127.0.0.1',
      '-p',
      String(port),
      ...['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'].flatMap((set) => ['-c', set]),
    ],
    ...place,
    ready: /ready to accept connections/,
    signal: 'SIGINT',
  });
  return { url: (database) => `postgres://postgres:secret@127.0.0.1:${port}/${database}`, stop };
}

/** Runs statements, one after the other, on a connection of their own. */
export async function runPostgres(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
