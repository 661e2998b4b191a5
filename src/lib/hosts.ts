import { isIP } from 'node:net';

/** Whether a host name or address can only be reached from this machine. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (address === 'localhost' || address === '::1') return true;
  const v4 = address.replace(/^::ffff:/, '');
  return isIP(v4) === 4 && v4.startsWith('127.');
}

/**
 * Whether a Host header names this machine and port. Protects a port without a token from DNS rebinding: a browser that
 * was made to resolve a foreign name to this machine still sends that name.
 */
export function namesLoopback(hostHeader: string | undefined, port: number): boolean {
  const match = /^([^:[\]]+|\[[^[\]]+\])(?::(\d{1,5}))?$/.exec(hostHeader ?? '');
  return match !== null && isLoopback(match[1] ?? '') && Number(match[2] ?? 80) === port;
}

/** Whether a server that listens on this host accepts connections to every address of the machine. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** The URL of a server that listens on `host`; one that listens on every address is reached as localhost. */
export function serverUrl(host: string, port: number): string {
  if (isWildcard(host)) return `http://localhost:${port}`;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * The IP address in an entry of X-Forwarded-For, which some proxies write in quotes or with a port; undefined for
 * anything else.
 */
export function ipOf(entry = ''): string | undefined {
  const text = entry.replace(/^"(.*)"$/, '$1');
  const address = /^\[(.+)\](:\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return isIP(address) === 0 ? undefined : address;
}

/** What a server tells its app about a request, in the locals of the response. */
export interface TargetCheck {
  /** Continues "The request has": its invalid target, Host or Transfer-Encoding header; undefined if all are valid. */
  readonly targetFault: string | undefined;
}
