import { isIP } from 'node:net';

/** Whether a host, as one listens on it or as a socket tells it, can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (address === 'localhost' || address === '::1') return true;
  const v4 = address.replace(/^::ffff:/, '');
  return isIP(v4) === 4 && v4.startsWith('127.');
}

/**
 * Whether a Host header names this very machine and port. Where nothing else protects the port this closes DNS
 * rebinding: a page whose own name has been made to point here still sends that name.
 */
export function namesLoopback(hostHeader: string | undefined, port: number): boolean {
  const match = /^([^:[\]]+|\[[^[\]]+\])(?::(\d{1,5}))?$/.exec(hostHeader ?? '');
  return match !== null && isLoopback(match[1] ?? '') && Number(match[2] ?? 80) === port;
}
