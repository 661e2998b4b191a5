import { openTables } from './databases/tables.ts';
import { isDatabaseUrl, parseDatabaseUrl } from './databases/urls.ts';
import { openFiles } from './files/folder.ts';
import type { Mapping } from './mapping.ts';
import { SourceError, type Source } from './source.ts';

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
  if (!isDatabaseUrl(location)) return openFiles(location, mapping);
  const address = parseDatabaseUrl(location, env);
  if (mapping === undefined) {
    throw new SourceError(
      `${address.shown} needs a mapping: name the queries in a file and give it as --mapping`,
    );
  }
  // Only the driver that is needed is loaded: both together take longer than reading a small source.
  if (address.dialect === 'mysql') {
    const { openMysql } = await import('./databases/mysql.ts');
    return openTables(address, await openMysql(address, signal), mapping, signal);
  }
  const { openPostgres } = await import('./databases/postgres.ts');
  return openTables(address, await openPostgres(address, signal), mapping, signal);
}
