import type { Random } from '../random.ts';
import type { Request } from './request.ts';

/** A way to corrupt a valid request. */
type Mutation = (request: Request, random: Random) => Request;

const withHeader =
  (...choices: readonly (readonly [string, string])[]): Mutation =>
  (request, random) => ({ ...request, headers: [...request.headers, random.pick(choices)] });

const withoutHeader =
  (unwanted: string): Mutation =>
  (request) => ({ ...request, headers: request.headers.filter(([name]) => name !== unwanted) });

const replacing =
  (wanted: string, ...values: readonly string[]): Mutation =>
  (request, random) => ({
    ...request,
    headers: request.headers.map(([name, value]) => [name, name === wanted ? random.pick(values) : value]),
  });

/** Another body, and the length that goes with it. */
const withBody =
  (make: (random: Random, body: Buffer) => Buffer | string): Mutation =>
  (request, random) => {
    const body = Buffer.from(make(random, request.body));
    return {
      ...request,
      headers: request.headers.map(([name, value]) => [
        name,
        name === 'Content-Length' ? String(body.length) : value,
      ]),
      body,
    };
  };

const bytes = (random: Random, length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => random.between(0, 255)));

export const mutations: readonly Mutation[] = [
  // The request line.
  (request, random) => ({
    ...request,
    method: random.pick(['get', 'PATCH', 'TRACE', 'CONNECT', 'BREW', '', 'GE T', 'PUT\0']),
  }),
  (request, random) => ({
    ...request,
    path: random.pick([
      '*',
      '//',
      '/api/profile/%00',
      '/api/profile/%ff%fe',
      '/api/profile/../../etc/passwd',
      'http://elsewhere.example.com/api/profile/',
      '/api/profile/?__proto__[x]=1',
      `/${'a'.repeat(random.between(1, 30_000))}`,
      '/media/%2e%2e%2fsecret',
      '/docs/../openapi.yaml',
      '/api/profile/#fragment',
      '/%',
    ]),
  }),
  (request, random) => ({
    ...request,
    version: random.pick(['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/9.9', 'HTTP', '', 'HTCPCP/1.0']),
  }),
  // Headers.
  withHeader(['Host', 'another.example.com']),
  withoutHeader('Host'),
  replacing('Host', '', ' ', 'a b', '[::1', 'x'.repeat(9000), '\u00ff'),
  withoutHeader('Content-Length'),
  replacing(
    'Content-Length',
    '0',
    '1',
    '-1',
    '+5',
    '5, 5',
    '1e3',
    '0x10',
    '99999999999999999999',
    'many',
    '4',
  ),
  withHeader(
    ['Transfer-Encoding', 'chunked'],
    ['Transfer-Encoding', 'gzip, chunked'],
    ['Transfer-Encoding', 'identity'],
    ['Transfer-Encoding', ' chunked '],
  ),
  withHeader(['Content-Length', '3'], ['content-length', '0']),
  withHeader(['Expect', '100-continue'], ['Expect', '200-ok']),
  withHeader(['Upgrade', 'h2c'], ['Upgrade', 'websocket']),
  withHeader(['Connection', 'close'], ['Connection', 'upgrade'], ['Connection', 'keep-alive, close, x']),
  withHeader(['Content-Encoding', 'gzip'], ['Content-Encoding', 'br'], ['Content-Encoding', 'nothing']),
  withHeader(
    ['Range', 'bytes=0-1'],
    ['Range', 'bytes=9-1,-,5-'],
    ['If-None-Match', '*'],
    ['If-Modified-Since', 'yesterday'],
  ),
  withHeader(
    ['Origin', 'null'],
    ['Origin', 'https://evil.example.com'],
    ['Access-Control-Request-Method', 'PUT'],
  ),
  withHeader(
    ['X-Forwarded-For', '1.2.3.4, , 5'],
    ['Forwarded', 'for='],
    ['traceparent', '00-zz'],
    ['X-Request-Id', '\t'],
  ),
  withHeader(['x-api-key', 'second'], ['x-platform-organization-id', 'second']),
  replacing('x-api-key', '', 'wrong', '\u00e9\u00ff', 'k'.repeat(5000), '__proto__'),
  replacing(
    'x-platform-organization-id',
    '',
    '}{',
    '\u00c3\u0028',
    'nobody',
    'o'.repeat(5000),
    '__proto__',
    '*',
  ),
  replacing(
    'Content-Type',
    '',
    'text/plain',
    'application/json; charset=utf-16',
    'application/json; charset="',
    'multipart/form-data',
    'multipart/form-data; boundary=',
    `multipart/form-data; boundary=${'b'.repeat(300)}`,
    'multipart/form-data; boundary=boundary; boundary=other',
    'multipart/mixed; boundary=boundary',
    ';;;',
  ),
  (request, random) => ({
    ...request,
    headers: [...request.headers, [`x-${'n'.repeat(random.between(1, 20_000))}`, 'v']],
  }),
  (request, random) => {
    const many = Array.from({ length: random.between(50, 3000) }, (_, index) => [`x-${index}`, 'v'] as const);
    return { ...request, headers: [...request.headers, ...many] };
  },
  (request, random) => ({
    ...request,
    headers: [
      ...request.headers,
      [random.pick(['bad name', '', ':', '\0', 'é']), random.pick(['\0', '\r', '\n x: y', '\u0001'])],
    ],
  }),
  // Bodies.
  withBody((random, body) => body.subarray(0, random.between(0, body.length))),
  withBody((random) => bytes(random, random.between(0, 2000))),
  withBody((random, body) => Buffer.concat([body, bytes(random, random.between(1, 200))])),
  withBody((random) =>
    random.pick([
      '',
      'null',
      '[]',
      '{}',
      '0',
      '"',
      '[[',
      '{"a":',
      '\ufeff{}',
      'NaN',
      '[1e999]',
      '{"username":"\\ud800"}',
    ]),
  ),
  withBody((random) => '['.repeat(random.between(1, 100_000))),
  withBody((random) =>
    JSON.stringify(
      Array.from({ length: random.between(1, 3000) }, () =>
        random.pick([0, null, '', 'x', '\u0000', {}, []]),
      ),
    ),
  ),
  withBody(() => '{"__proto__":{"username":"x"},"constructor":"y","username":"a","username":5}'),
  withBody((random) => `{"username":"${'u'.repeat(random.between(1, 60_000))}"}`),
  withBody(
    (random) =>
      `--boundary\r\nContent-Disposition: form-data; name="username"\r\nContent-Type: text/plain; charset=${random.pick(['utf-16', 'x', 'latin1', ''])}\r\n\r\nabc\r\n--boundary--\r\n`,
  ),
  withBody((random) =>
    Buffer.concat([
      Buffer.from('--boundary\r\nContent-Disposition: form-data; name="username"\r\n\r\n'),
      bytes(random, 40),
      Buffer.from('\r\n--boundary--\r\n'),
    ]),
  ),
  withBody(
    (random) =>
      `--boundary\r\n${random.pick(['', 'Content-Disposition: form-data\r\n', 'Content-Disposition: form-data; name=""; filename=""\r\n', `X: ${'h'.repeat(20_000)}\r\n`])}\r\nabc${random.pick(['', '\r\n--boundary', '\r\n--boundary--', '\r\n--boundary--\r\n'])}`,
  ),
  withBody((random) =>
    Array.from(
      { length: random.between(2, 300) },
      (_, index) =>
        `--boundary\r\nContent-Disposition: form-data; name="p${index}"; filename="f"\r\n\r\nGIF89a\r\n`,
    ).join(''),
  ),
];

/** The body in chunks, some of them not in order. */
export function inChunks(body: Buffer, random: Random): Buffer {
  const size = random.pick([
    body.length.toString(16),
    '5',
    'zz',
    '-1',
    'fffffffffffffffff',
    `${body.length.toString(16)};x=y`,
  ]);
  return Buffer.concat([
    Buffer.from(`${size}\r\n`),
    body,
    Buffer.from(random.pick(['\r\n0\r\n\r\n', '\r\n0\r\nTrailer: x\r\n\r\n', '\r\n', ''])),
  ]);
}
