export interface HostPort {
  host: string;
  port: number;
}

/** Where a store is and who we are there; `display` is the same for people, without the password. */
export type RedisAddress = {
  display: string;
  username?: string;
  password?: string;
} & (
  | { kind: 'single'; tls: boolean; at: HostPort }
  | { kind: 'socket'; path: string }
  | {
      kind: 'sentinel';
      tls: boolean;
      nodes: HostPort[];
      name: string;
      sentinelUsername?: string;
      sentinelPassword?: string;
    }
  | { kind: 'cluster'; tls: boolean; nodes: HostPort[] }
);

const forms =
  'redis://host:6379, rediss://host:6379, redis+sentinel://h1:26379,h2:26379/NAME, redis+cluster://h1:6379,h2:6379 or unix:///path';
const shape =
  /^(?<scheme>[a-z+]+):\/\/(?:(?<user>.*)@)?(?<hosts>[^@/?]*)(?<path>\/[^?]*)?(?:\?(?<query>.*))?$/i;

/**
 * Reads a REDIS_URL: `redis[s]://`, `redis[s]+sentinel://h1,h2/NAME`, `redis[s]+cluster://h1,h2`, or
 * `unix:///path`, each with an optional `user:password@`; the sentinels' own credentials are
 * `?sentinelUsername=…&sentinelPassword=…`. Throws an Error of one line with the remedy, which never holds a
 * password.
 */
export function parseRedisUrl(url: string): RedisAddress {
  const parts = shape.exec(url)?.groups;
  if (parts === undefined) throw new Error(`REDIS_URL is not understood: write it as ${forms}`);
  const scheme = (parts['scheme'] ?? '').toLowerCase();
  const hosts = parts['hosts'] ?? '';
  const path = decode(parts['path'] ?? '');
  const display = `${scheme}://${hosts}${parts['path'] ?? ''}`;
  const base = { display, ...credentials(parts['user']) };
  const tls = scheme.startsWith('rediss');
  switch (scheme) {
    case 'unix':
      if (hosts !== '' || path === '')
        throw new Error(`REDIS_URL ${display}: write a socket as unix:///absolute/path`);
      return { ...base, kind: 'socket', path };
    case 'redis':
    case 'rediss': {
      const [at, ...more] = readHosts(hosts, 6379, display);
      if (at === undefined || more.length > 0) {
        throw new Error(
          `REDIS_URL ${display} names several hosts: say redis+cluster:// or redis+sentinel://…/NAME`,
        );
      }
      refuseDatabase(path, display);
      return { ...base, kind: 'single', tls, at };
    }
    case 'redis+cluster':
    case 'rediss+cluster':
      refuseDatabase(path, display);
      return { ...base, kind: 'cluster', tls, nodes: readHosts(hosts, 6379, display) };
    case 'redis+sentinel':
    case 'rediss+sentinel': {
      const name = path.replace(/^\//, '');
      if (name === '' || name.includes('/')) {
        throw new Error(`REDIS_URL ${display} lacks the master's name: write ${scheme}://${hosts}/NAME`);
      }
      const query = new URLSearchParams(parts['query']);
      const sentinelUsername = query.get('sentinelUsername');
      const sentinelPassword = query.get('sentinelPassword');
      return {
        ...base,
        kind: 'sentinel',
        tls,
        nodes: readHosts(hosts, 26379, display),
        name,
        ...(sentinelUsername === null ? {} : { sentinelUsername }),
        ...(sentinelPassword === null ? {} : { sentinelPassword }),
      };
    }
    default:
      throw new Error(`REDIS_URL cannot start with ${scheme}://: write it as ${forms}`);
  }
}

function credentials(user: string | undefined): { username?: string; password?: string } {
  if (user === undefined) return {};
  const colon = user.indexOf(':');
  const username = decode(colon === -1 ? user : user.slice(0, colon));
  const password = colon === -1 ? '' : decode(user.slice(colon + 1));
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
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

/** Other databases than 0 are missing from clusters and from much that is managed; KEY_PREFIX serves both. */
function refuseDatabase(path: string, display: string): void {
  if (!/^\/?0?$/.test(path)) {
    throw new Error(`REDIS_URL ${display} names a database: drop "${path}", and share a Redis by KEY_PREFIX`);
  }
}

/** A "%" that encodes nothing stands for itself, as in passwords pasted as they are. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
