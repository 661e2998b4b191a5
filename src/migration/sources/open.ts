import { openTables } from './databases/tables.ts';
import { isDatabaseUrl, isMistakenAddress, parseDatabaseUrl } from './database-urls.ts';
import { openFiles } from './files/folder.ts';
import type { Mapping } from './mapping.ts';
import { SourceError, type Source } from './source.ts';

const neither =
  '--source is not a folder, a file or a database URL: a URL begins with postgres:// or mysql://, without quotes or spaces (it is not shown, since it may hold a password)';

/**
 * Opens what --source names: a folder, a file or a database URL. The mapping and, in a database, every query are
 * checked here, so that a mistake is known before anything is read. Failures are SourceErrors; one of them is that
 * `signal` was aborted meanwhile.
 */
export async function openSource(
  location: string,
  mapping?: Mapping,
  env: NodeJS.ProcessEnv = {},
  signal?: AbortSignal,
): Promise<Source> {
  if (!isDatabaseUrl(location)) {
    if (isMistakenAddress(location)) throw new SourceError(neither);
    return openFiles(location, mapping);
  }
  const address = parseDatabaseUrl(location, env);
  if (mapping === undefined) {
    throw new SourceError(
      `${address.shown} needs a mapping: name the queries in a file and give it as --mapping`,
    );
  }
  // Only the driver that is needed is loaded: both together take longer than reading a small source.
  const open =
    address.dialect === 'mysql'
      ? (await import('./databases/mysql.ts')).openMysql
      : (await import('./databases/postgres.ts')).openPostgres;
  return openTables(address, await open(address, signal), mapping, signal);
}
