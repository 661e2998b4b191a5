import type { IncomingMessage } from 'node:http';
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

/** A host and a port, either of which may be empty (RFC 9110 §7.2, RFC 3986 §3.2.2). */
const hostForm = /^(\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(:\d*)?$/i;

/** What a request has in place of exactly one Host header, which only HTTP/1.0 can do without (RFC 9112 §3.2). */
export function hostFault({ rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  let host: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length !== 4 || name.toLowerCase() !== 'host') continue;
    if (host !== undefined) return 'more than one Host header';
    host = rawHeaders[at + 1] ?? '';
  }
  if (host === undefined) return httpVersion === '1.1' ? 'no Host header' : undefined;
  return hostForm.test(host) ? undefined : 'a Host header that names no host';
}
