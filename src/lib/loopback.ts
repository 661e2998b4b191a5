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
