/** Whether a server that listens on this host accepts connections to every address of the machine. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** The URL of a server that listens on `host`; one that listens on every address is reached as localhost. */
export function serverUrl(host: string, port: number): string {
  if (isWildcard(host)) return `http://localhost:${port}`;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
