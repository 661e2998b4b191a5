import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { placeFor, startServer } from './private-server.ts';
import type { PrivateServer } from './private-server.ts';

function findProgram(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin'];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

const server = findProgram('mariadbd');
const install = findProgram('mariadb-install-db');
const timeZones = findProgram('mariadb-tzinfo-to-sql');

/** Defined where MariaDB is installed. */
export const mariadbPrograms = server && install;

/** Starts a MariaDB of this test file's own, user root with the password "secret", in this time zone (as in TZ). */
export async function startMariadb(zone?: string): Promise<PrivateServer> {
  if (server === undefined || install === undefined) throw new Error('MariaDB is not installed');
  const place = await placeFor('mysql');
  const { account, folder, port } = place;
  const data = join(folder, 'data');
  const quick = [
    '--innodb-log-file-size=8M',
    '--innodb-flush-log-at-trx-commit=0',
    '--innodb-fast-shutdown=2',
  ];
  const init = [
    '--no-defaults',
    `--datadir=${data}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    ...quick.slice(0, 1),
  ];
  execFileSync(install, init, { ...account, cwd: folder, stdio: 'ignore' });
  const args = [
    '--no-defaults',
    `--datadir=${data}`,
    `--socket=${join(folder, 'socket')}`,
    '--bind-address=127.0.0.1',
    `--port=${port}`,
    '--skip-log-bin',
    '--skip-name-resolve',
    ...quick,
  ];
  const stop = await startServer({
    command: server,
    args,
    ...place,
    env: { ...process.env, ...(zone !== undefined && { TZ: zone }) },
    ready: /ready for connections/,
    signal: 'SIGTERM',
  });
  const connection = await createConnection({ socketPath: join(folder, 'socket'), user: 'root' });
  await connection.query("CREATE OR REPLACE USER root@'127.0.0.1' IDENTIFIED BY 'secret'");
  await connection.query("GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION");
  await connection.end();
  return { url: (database) => `mysql://root:secret@127.0.0.1:${port}/${database}`, stop };
}

/** Runs statements, one after the other, on a connection of their own. */
export async function runMariadb(url: string, ...statements: readonly string[]): Promise<void> {
  const connection = await createConnection({ uri: url });
  try {
    for (const statement of statements) await connection.query(statement);
  } finally {
    await connection.end();
  }
}

/** Makes a time zone known to the server by its name. */
export async function loadTimeZone({ url }: PrivateServer, zone: string): Promise<void> {
  if (timeZones === undefined) throw new Error('the client programs of MariaDB are not installed');
  const tables = execFileSync(timeZones, [`/usr/share/zoneinfo/${zone}`, zone]).toString();
  await runMariadb(`${url('mysql')}?multipleStatements=true`, tables);
}
