import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ProblemError, type ProblemCode } from '../../src/contract/problems.ts';
import { createClient, type Client } from '../support/requests/client.ts';

interface Canned {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const RETIREMENT = {
  deprecation: '@1793491200',
  sunset: 'Fri, 31 Dec 2027 23:59:59 GMT',
  link: '</docs/#deprecation>; rel="deprecation"',
};
const STANDARD = { ...RETIREMENT, 'cache-control': 'private, no-store', 'x-request-id': 'r1' };
const lowerCased = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
const json = (value: unknown, status = 200): Canned => ({
  status,
  headers: { ...STANDARD, 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(value),
});
const refusal = (code: ProblemCode, headers: Record<string, string> = STANDARD): Canned => {
  const carried = new ProblemError(code, 'Because.', code === 'method-not-allowed' ? { allow: ['GET'] } : {});
  return {
    status: carried.status,
    headers: { ...headers, ...lowerCased(carried.headers), 'content-type': 'application/problem+json' },
    body: JSON.stringify(carried.toBody('r1')),
  };
};
const without = (canned: Canned, name: string): Canned => ({
  ...canned,
  headers: Object.fromEntries(Object.entries(canned.headers).filter(([key]) => key !== name)),
});
const withHeaders = (canned: Canned, headers: Record<string, string>): Canned => ({
  ...canned,
  headers: { ...canned.headers, ...headers },
});

let canned: Canned;
let server: Server;
let client: Client;
let received: { url: string | undefined; headers: NodeJS.Dict<string | string[]>; bytes: Buffer };

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received = { url: request.url, headers: request.headers, bytes: Buffer.concat(chunks) };
      response.writeHead(canned.status, canned.headers);
      response.end(canned.body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  client = createClient(`http://127.0.0.1:${port}`, { organization: 'zoë', apiKey: 'k' });
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

async function answered(method: string, path: string, answer: Canned): Promise<string> {
  canned = answer;
  try {
    await client.request(method, path);
    return 'documented';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('the test client', () => {
  test.each([
    ['GET', '/api/profile/', json({ username: 'Ada' })],
    ['GET', '/api/profile', json({})],
    ['GET', '/api/profile/?x=1', json({})],
    ['HEAD', '/api/profile/', { ...json({}), body: '' }],
    ['GET', '/api/profile/', refusal('profile-not-found')],
    ['GET', '/api/profile/', refusal('invalid-api-key')],
    ['GET', '/api/profile/', refusal('brownout')],
    ['GET', '/api/profile/', refusal('sunset')],
    ['GET', '/api/profile/', refusal('store-unavailable')],
    ['PATCH', '/api/profile/', refusal('method-not-allowed')],
    ['GET', '/api/profile/username/deny/', refusal('method-not-allowed')],
    ['PUT', '/api/profile/username/denylist/', { status: 204, headers: STANDARD, body: '' }],
    ['OPTIONS', '/api/profile/', { status: 204, headers: { ...STANDARD, allow: 'GET, PUT' }, body: '' }],
    ['GET', '/nowhere', refusal('not-found', { 'x-request-id': 'r1' })],
    [
      'GET',
      '/media/a.webp',
      { status: 200, headers: { 'content-type': 'image/webp', 'cache-control': 'immutable' }, body: 'x' },
    ],
  ] as [string, string, Canned][])('accepts %s %s as documented', async (method, path, answer) => {
    expect(await answered(method, path, answer)).toBe('documented');
  });

  test.each([
    ['an unknown status', 'GET', '/api/profile/', json({}, 202), 'no status 202'],
    ['an undocumented field', 'GET', '/api/profile/', json({ user: 1 }), 'additional properties'],
    ['null for an unset field', 'GET', '/api/profile/', json({ username: null }), 'must be string'],
    ['a missing header', 'GET', '/api/profile/', without(json({}), 'deprecation'), 'deprecation is missing'],
    ['a bad date', 'GET', '/api/profile/', withHeaders(json({}), { sunset: '2027-12-31' }), 'header sunset'],
    [
      'a sunset before the deprecation',
      'GET',
      '/api/profile/',
      withHeaders(json({}), { sunset: 'Thu, 31 Dec 2020 23:59:59 GMT' }),
      'earlier',
    ],
    [
      'an unknown header',
      'GET',
      '/api/profile/',
      withHeaders(json({}), { 'x-powered-by': 'Express' }),
      'x-powered-by is not documented',
    ],
    [
      'another content type',
      'GET',
      '/api/profile/',
      withHeaders(json({}), { 'content-type': 'text/html' }),
      'content type text/html',
    ],
    ['the wrong code', 'GET', '/api/profile/', refusal('admin-required'), '/code'],
    ['an internal error', 'GET', '/api/profile/', refusal('internal-error'), 'mistake in the service'],
    ['a body without need', 'OPTIONS', '/api/profile/', json({}, 204), 'content type'],
    ['another refusal of methods', 'PATCH', '/api/profile/', refusal('profile-not-found'), 'not 405'],
    [
      'deprecation headers on another path',
      'GET',
      '/nowhere',
      refusal('not-found'),
      'header deprecation is not documented',
    ],
    ['success on an unknown path', 'GET', '/nowhere', json({}), 'answers 404'],
    [
      'a brownout without its end',
      'GET',
      '/api/profile/',
      without(refusal('brownout'), 'retry-after'),
      'goes with a brownout',
    ],
    [
      'a refusal without a challenge',
      'GET',
      '/api/profile/',
      without(refusal('invalid-api-key'), 'www-authenticate'),
      'www-authenticate is missing',
    ],
  ] as [string, string, string, Canned, string][])('throws on %s', async (_, method, path, answer, fault) => {
    expect(await answered(method, path, answer)).toContain(fault);
  });

  test('sends its credentials, with the organization as UTF-8', async () => {
    await answered('GET', '/api/profile/', json({}));
    expect(received.headers['x-api-key']).toBe('k');
    expect(
      Buffer.from(String(received.headers['x-platform-organization-id']), 'latin1').toString('utf8'),
    ).toBe('zoë');
  });

  test('sends broken bodies and headers as they are', async () => {
    canned = refusal('invalid-json');
    const body = Buffer.from([0x7b, 0xff, 0x00]);
    await client.request('PUT', '/api/profile/', { body, headers: { 'x-api-key': undefined } });
    expect(received.bytes).toEqual(body);
    expect(received.headers['content-type']).toBe('application/json');
    expect(received.headers).not.toHaveProperty('x-api-key');
  });

  test('sends forms as multipart', async () => {
    canned = json({});
    const form = new FormData();
    form.set('profilePicture', new Blob(['x']), 'x.png');
    await client.request('PUT', '/api/profile/', { form });
    expect(received.headers['content-type']).toMatch(/^multipart\/form-data; boundary=/);
    expect(received.bytes.toString()).toContain('filename="x.png"');
  });
});
