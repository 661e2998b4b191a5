export interface HostPort {
  host: string;
  port: number;
}

/** The address of a store, and its credentials; `display` is the URL to show to people, without the password. */
export type RedisAddress = {
  display: string;
  username?: string | undefined;
  password?: string | undefined;
} & (
  | { kind: 'single'; tls: boolean; at: HostPort }
  | { kind: 'socket'; path: string }
  | {
      kind: 'sentinel';
      tls: boolean;
      nodes: HostPort[];
      name: string;
      sentinelUsername?: string | undefined;
      sentinelPassword?: string | undefined;
    }
  | { kind: 'cluster'; tls: boolean; nodes: HostPort[] }
);

const forms =
  'redis://host:6379, rediss://host:6379, redis+sentinel://h1:26379,h2:26379/NAME, redis+cluster://h1:6379,h2:6379 or unix:///path';
const shape =
  /^(?<scheme>[a-z+]+):\/\/(?:(?<user>(?:(?!\?sentinel).)*)@)?(?<hosts>[^@/?]*)(?<path>\/[^?]*)?(?:\?(?<query>.*))?$/i;

/**
 * Reads a REDIS_URL: one of `forms`, with an optional `user:password@`; the sentinels' own credentials are
 * `?sentinelUsername=…&sentinelPassword=…`. Throws an Error of one line with the remedy, without the password.
 */
export function parseRedisUrl(url: string): RedisAddress {
  const parts = shape.exec(url)?.groups;
  if (parts === undefined) throw new Error(`REDIS_URL is not understood: write it as ${forms}`);
  const scheme = (parts['scheme'] ?? '').toLowerCase();
  const hosts = parts['hosts'] ?? '';
  const path = decode(parts['path'] ?? '');
  const display = `${scheme}://${hosts}${parts['path'] ?? ''}`;
  const base = { display, ...credentials(parts['user']) };
  const query = readQuery(parts['query'], scheme.endsWith('+sentinel') ? sentinelParameters : [], display);
  if (scheme === 'unix') {
    if (hosts === '' && path !== '') return { ...base, kind: 'socket', path };
    throw new Error(`REDIS_URL ${display}: write a socket as unix:///absolute/path`);
  }
  const [protocol, mode = 'single'] = scheme.split('+', 2);
  if (!/^rediss?(\+cluster|\+sentinel)?$/.test(scheme)) {
    throw new Error(`REDIS_URL cannot start with ${scheme}://: write it as ${forms}`);
  }
  const tls = protocol === 'rediss';
  const nodes = readHosts(hosts, mode === 'sentinel' ? 26379 : 6379, display);
  if (mode === 'sentinel') {
    const name = path.slice(1);
    if (name === '' || name.includes('/')) {
      throw new Error(`REDIS_URL ${display} lacks the master's name: write ${scheme}://${hosts}/NAME`);
    }
    return { ...base, kind: mode, tls, nodes, name, ...query };
  }
  if (mode === 'cluster') {
    refuseDatabase(path, display);
    return { ...base, kind: mode, tls, nodes };
  }
  const [at, ...more] = nodes;
  if (at === undefined || more.length > 0) {
    throw new Error(
      `REDIS_URL ${display} names several hosts: write redis+cluster:// or redis+sentinel://…/NAME`,
    );
  }
  refuseDatabase(path, display);
  return { ...base, kind: 'single', tls, at };
}

const sentinelParameters = ['sentinelUsername', 'sentinelPassword'];

/** The parameters after the question mark; throws an Error for one that is not among these. */
function readQuery(text = '', known: readonly string[], display: string): Record<string, string> {
  const pairs = text.split('&').filter(Boolean);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(pair) ?? [];
      if (known.includes(name)) return [name, decode(value)];
      throw new Error(`REDIS_URL ${display} has "?${name}", which is not supported: remove it`);
    }),
  );
}

function credentials(text = ''): Pick<RedisAddress, 'username' | 'password'> {
  const [, username = '', password = ''] = /^([^:]*):?(.*)$/s.exec(text) ?? [];
  return { username: decode(username) || undefined, password: decode(password) || undefined };
}

function readHosts(text: string, defaultPort: number, display: string): HostPort[] {
  return text.split(',').map((one) => {
    const parts = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[^:[\]]+))(?::(?<port>\d{1,5}))?$/.exec(one)?.groups;
    const host = parts?.['v6'] ?? parts?.['name'];
    const port = Number(parts?.['port'] ?? defaultPort);
    if (host === undefined || port < 1 || port > 65535) {
      throw new Error(`REDIS_URL ${display}: "${one}" is not host:port`);
    }
    return { host, port };
  });
}

/** Clusters and many managed services have only database 0. */
function refuseDatabase(path: string, display: string): void {
  if (!/^\/?0?$/.test(path)) {
    throw new Error(
      `REDIS_URL ${display} names a database: remove "${path}", and use KEY_PREFIX to share a Redis`,
    );
  }
}

/** Text that is not percent-encoded correctly is taken literally, such as a password with a "%" in it. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
