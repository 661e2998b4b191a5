import { existsSync } from 'node:fs';
import { readSecretFile } from '../../lib/files/secret-files.ts';
import { passwordSetting } from '../../lib/passwords.ts';
import { SourceError } from './source.ts';

export type Dialect = 'postgresql' | 'mysql';

const dialects: Readonly<Record<string, Dialect>> = {
  'postgres:': 'postgresql',
  'postgresql:': 'postgresql',
  'mysql:': 'mysql',
  'mariadb:': 'mysql',
};

/** What the URLs of each database may say. */
export const urlForms = {
  postgresql: {
    /** Where its clients look for a password. */
    passwordVariable: 'PGPASSWORD',
    /** The parameters about TLS that the driver is given. */
    encryption: ['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'uselibpqcompat'],
    /** The values of sslmode. The driver cannot do without TLS only where the server does not offer it. */
    encryptionModes: /^(?:disable|require|verify-ca|verify-full|no-verify)$/,
    others: ['host', 'port', 'user', 'password', 'options', 'application_name', 'channel_binding'],
    /** Those that hosting providers and other tools write, and that change nothing of what is read. */
    ignored:
      /^(?:connect_timeout|keepalives(?:_idle|_interval|_count)?|tcp_user_timeout|pgbouncer|connection_limit|pool_timeout)$/,
  },
  mysql: {
    passwordVariable: 'MYSQL_PWD',
    encryption: ['ssl', 'tls', 'sslmode', 'ssl-mode'],
    encryptionModes: /^(?:disabled?|allow|prefer(?:red)?|required?|verify[-_](?:ca|full|identity))$/i,
    others: ['socketPath'],
    ignored:
      /^(?:charset|timezone|connectTimeout|connectionLimit|connect_timeout|connection_limit|pool_timeout)$/,
  },
} as const;

/** A database to read, with what may be shown of it. */
export interface DatabaseUrl {
  readonly dialect: Dialect;
  readonly url: URL;
  /** User, host, port and database, which tell it from others; never a password. */
  readonly shown: string;
}

/** Whether --source means a database rather than a file. */
export function isDatabaseUrl(location: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(location);
}

const setsPassword = new RegExp(passwordSetting, 'i');
const address = new RegExp(
  String.raw`://|^\W*(?:jdbc|postgres(?:ql)?|mysql|mariadb):|@|${passwordSetting}`,
  'i',
);

/** Whether a path leads nowhere and looks like a database's address: it may hold a password, so it must not be shown. */
export function isMistakenAddress(path: string): boolean {
  return address.test(path) && !existsSync(path);
}

/**
 * Reads a database's URL; an unusable one is refused without showing it, for its password would be shown too. A
 * password that it does not have comes from SOURCE_PASSWORD, from the file that SOURCE_PASSWORD_FILE names, or from
 * the database's own variable.
 */
export function parseDatabaseUrl(location: string, env: NodeJS.ProcessEnv): DatabaseUrl {
  const scheme = location.slice(0, location.indexOf(':') + 1).toLowerCase();
  const dialect = dialects[scheme];
  if (dialect === undefined) {
    throw new SourceError(
      `--source cannot be a ${scheme}// URL: use postgres://, postgresql://, mysql:// or mariadb://`,
    );
  }
  const url = readUrl(location);
  // An unencoded / ? or # in a password ends the host early, and leaves its @ behind in what follows.
  const isCut = url !== undefined && /@/.test(url.pathname + url.search + url.hash);
  if (url === undefined || isCut || setsPassword.test(url.pathname)) throw new SourceError(notValid);
  checkParameters(url, dialect);
  const user = url.username === '' ? '' : `${url.username}@`;
  if (url.password === '') url.password = encodeURIComponent(passwordFrom(env, dialect) ?? '');
  return { dialect, url, shown: `${scheme}//${user}${url.host}${url.pathname}${placeIn(url)}` };
}

const notValid =
  'the source URL is not valid: check its host and port, and percent-encode special characters in its user and password';

/** Refuses what would be ignored otherwise: the password could be sent without encryption, or to another server. */
function checkParameters({ searchParams }: URL, dialect: Dialect): void {
  const { others, encryption, ignored, encryptionModes } = urlForms[dialect];
  const known: readonly string[] = [...others, ...encryption];
  for (const [name, value] of searchParams) {
    if (!known.includes(name) && !ignored.test(name)) {
      // This may be what follows an unencoded & in it.
      if (searchParams.has('password')) throw new SourceError(notValid);
      throw new SourceError(
        `the source URL has an unknown parameter ${name}: write one of ${known.join(', ')} (for TLS, sslmode=verify-full), or remove it`,
      );
    }
    if (/^ssl-?mode$/.test(name) && !encryptionModes.test(value))
      throw new SourceError(
        `the source URL has ${name}=${value}, which cannot be used: write ${name}=verify-full for TLS, or ${name}=disable`,
      );
  }
}

/** The parameters that say where the server is, such as a socket. */
function placeIn({ searchParams }: URL): string {
  const names = ['host', 'port', 'socketPath'].filter((name) => searchParams.has(name));
  return names.length === 0 ? '' : `?${names.map((name) => `${name}=${searchParams.get(name)}`).join('&')}`;
}

function passwordFrom(env: NodeJS.ProcessEnv, dialect: Dialect): string | undefined {
  const { SOURCE_PASSWORD: password, SOURCE_PASSWORD_FILE: file } = env;
  if (!file) return password ?? env[urlForms[dialect].passwordVariable];
  if (password) {
    throw new SourceError('SOURCE_PASSWORD and SOURCE_PASSWORD_FILE are both set: set only one of them');
  }
  const mistakes: string[] = [];
  const read = readSecretFile('SOURCE_PASSWORD_FILE', file, mistakes);
  if (mistakes.length > 0) throw new SourceError(mistakes.join('\n'));
  return read;
}

/** The URL, if it is valid and so is what is encoded in it. */
function readUrl(location: string): URL | undefined {
  try {
    const url = new URL(location);
    decodeURIComponent(url.username + url.password + url.pathname);
    return url;
  } catch {
    return undefined;
  }
}
