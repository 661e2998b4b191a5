/** Who an attack claims to be. */
export interface Credentials {
  organizationId: string;
  playerKey: string;
  adminKey: string;
}

/** A request before it becomes bytes, so that each part can be corrupted by itself. */
export interface Request {
  method: string;
  path: string;
  version: string;
  headers: (readonly [string, string])[];
  body: Buffer;
}

/** The request as bytes; header text is Latin-1, as on the wire. */
export function encode({ method, path, version, headers, body }: Request): Buffer {
  const head = [
    `${method} ${path} ${version}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ];
  return Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), body]);
}

const profile = '/api/profile/';
const boundary = 'boundary';

/** A valid request, with the length of its body. */
export function makeRequest(
  method: string,
  path: string,
  { organizationId, apiKey }: { organizationId: string; apiKey: string },
  body: Buffer = Buffer.alloc(0),
  type = 'application/json',
): Request {
  const headers: [string, string][] = [
    ['Host', 'bridge.example.com'],
    ['Connection', 'close'],
    ['x-api-key', apiKey],
    ['x-platform-organization-id', organizationId],
  ];
  if (body.length > 0) headers.push(['Content-Type', type], ['Content-Length', String(body.length)]);
  return { method, path, version: 'HTTP/1.1', headers, body };
}

/** One valid request for each operation of the contract, and some beside it. */
export function validRequests({ organizationId, playerKey, adminKey }: Credentials): readonly Request[] {
  const player = { organizationId, apiKey: playerKey };
  const admin = { organizationId, apiKey: adminKey };
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
  const form = `multipart/form-data; boundary=${boundary}`;
  return [
    makeRequest('GET', profile, player),
    makeRequest('GET', '/api/profile', player),
    makeRequest('PUT', profile, player, json({ username: 'somebody' })),
    makeRequest('PUT', profile, player, json({ avatarObjectDefinitionId: null })),
    makeRequest('PUT', profile, player, part('username', 'somebody'), form),
    makeRequest('PUT', profile, player, file(Buffer.from('GIF89a not really')), form),
    makeRequest('POST', `${profile}username/deny/`, admin, json({ bad: 'good', __proto__x: 'fine' })),
    makeRequest('DELETE', `${profile}username/deny/`, admin, json(['bad', 'worse'])),
    makeRequest('PUT', `${profile}username/denylist/`, admin, json(['bad', 'worse'])),
    makeRequest('OPTIONS', profile, player),
    makeRequest('HEAD', profile, player),
    makeRequest('GET', '/readyz', player),
    makeRequest('GET', '/openapi.yaml', player),
    makeRequest('GET', '/docs/', player),
    makeRequest('GET', '/media/nothing.webp', player),
    makeRequest('GET', '/nowhere', player),
  ];
}

/** A multipart body of one text part. */
export function part(name: string, text: string | Buffer, headers = ''): Buffer {
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${headers}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(text), Buffer.from(`\r\n--${boundary}--\r\n`)]);
}

export function file(bytes: Buffer): Buffer {
  return part('profilePicture', bytes, '; filename="picture.gif"\r\nContent-Type: image/gif');
}
