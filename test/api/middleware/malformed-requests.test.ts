import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { contractDocument } from '../../../src/contract/document.ts';
import { lingerMs, refuseUnreadable } from '../../../src/api/middleware/malformed-requests.ts';
import { startBridge, type TestBridge } from '../../support/bridge.ts';
import { startStopwatch } from '../../support/stopwatch.ts';
import { assertDocumented, schemaFaults } from '../../support/requests/conformance.ts';

let bridge: TestBridge;
let credentials: string;
beforeAll(async () => {
  bridge = await startBridge();
  const { newKey } = await bridge.newOrganization({}, 'unreadable');
  const { apiKey } = await newKey({ role: 'player', userId: 'u1' });
  credentials = `X-Platform-Organization-Id: unreadable\r\nX-Api-Key: ${apiKey}\r\n`;
});
afterAll(() => bridge.close());

function dial(port: number | string = new URL(bridge.url).port): Socket {
  return connect(Number(port), '127.0.0.1');
}

/** Everything received until the server has closed. */
async function answersTo(text: string, socket = dial()): Promise<string> {
  let all = '';
  socket.on('data', (chunk) => (all += String(chunk)));
  // A reset also ends the connection.
  socket.on('error', () => {});
  socket.write(text);
  await new Promise((resolve) => {
    socket.once('close', resolve);
  });
  return all;
}

function put(body: string): string {
  const head = `PUT /api/profile/ HTTP/1.1\r\nHost: x\r\n${credentials}Content-Type: application/json\r\n`;
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
}

function parse(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const [status, ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line): [string, string] => {
      const [name = '', value = ''] = line.split(/: (.*)/s);
      return [name.toLowerCase(), value];
    }),
  );
  return { status, headers, body };
}

function expectProblem(answer: string, status: string, code: string) {
  const { headers, body, ...rest } = parse(answer);
  expect(rest.status).toBe(`HTTP/1.1 ${status}`);
  expect(headers).toMatchObject({
    'content-type': 'application/problem+json',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'private, no-store',
    connection: 'close',
  });
  const problem = JSON.parse(body) as Record<string, unknown>;
  expect(schemaFaults(contractDocument().components.schemas['Problem'] ?? {}, problem)).toEqual([]);
  expect(problem).toMatchObject({ code, requestId: headers['x-request-id'] });
  return headers;
}

describe('bytes that are not a request', () => {
  test.each([
    ['a line that is none', 'hello?\r\n\r\n', '400 Bad Request', 'malformed-request'],
    ['a version nobody knows', 'GET / HTTP/9.9\r\n\r\n', '400 Bad Request', 'malformed-request'],
    ['the beginning of TLS', '\x16\x03\x01\x02\x00\x01', '400 Bad Request', 'malformed-request'],
    ['a header without a name', 'GET / HTTP/1.1\r\n: x\r\n\r\n', '400 Bad Request', 'malformed-request'],
    ['no host', 'GET /api/profile/ HTTP/1.1\r\n\r\n', '400 Bad Request', 'malformed-request'],
    ...['a b', '<x>', 'a/b', 'x@evil.example', 'x?y', 'a:b', '[::1', '\u00fc', 'x:1:2', '%"'].map((host) => [
      `the host ${host}`,
      `GET /api/profile/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      '400 Bad Request',
      'malformed-request',
    ]),
    [
      'two lengths',
      'PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
      '400 Bad Request',
      'malformed-request',
    ],
    [
      'more headers than are read',
      `GET / HTTP/1.1\r\nHost: x\r\nX-Much: ${'x'.repeat(20_000)}\r\n\r\n`,
      '431 Request Header Fields Too Large',
      'headers-too-large',
    ],
  ])('%s is refused with a problem, and the connection closed', async (_what, text, status, code) => {
    expectProblem(await answersTo(text), status, code);
  });

  test.each(['FOO', 'get'])('%s is no method, and the answer says so', async (method) => {
    const answer = await answersTo(`${method} /api/profile/ HTTP/1.1\r\nHost: x\r\n\r\n`);
    expectProblem(answer, '400 Bad Request', 'malformed-request');
    expect(answer).toContain('The bytes received do not begin with a known HTTP method.');
  });

  test('are refused once, whatever else is sent, and a client that does not close is disconnected after a second', async () => {
    const socket = connect({
      port: Number(new URL(bridge.url).port),
      host: '127.0.0.1',
      allowHalfOpen: true,
    });
    const more = setInterval(() => socket.write('and more\r\n'), 5);
    let elapsed = startStopwatch();
    socket.once('data', () => (elapsed = startStopwatch()));
    const answers = await answersTo('hello?\r\n\r\n', socket);
    clearInterval(more);
    expect(answers.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(elapsed()).toBeGreaterThan(lingerMs / 2);
  });

  test('leave the server unharmed if the client resets the connection', async () => {
    for (const text of [
      'GET / HTTP/1.1\r\nHo',
      'hello?\r\n\r\n',
      'PUT /api/profile/ HTTP/1.1\r\nHost: x\r\n',
    ]) {
      const socket = dial();
      await once(socket, 'connect');
      socket.write(text, () => socket.resetAndDestroy());
      await once(socket, 'close');
    }
    expect((await fetch(`${bridge.url}/livez`)).status).toBe(200);
  });

  test.each(['', 'localhost', 'a_b.example:', '[::1]:8080', '127.0.0.1:80', 'xn--bcher-kva.example'])(
    'the host "%s" is one',
    async (host) => {
      const answer = await answersTo(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
    },
  );

  test('no host, at a path of the contract, is refused with the headers of the contract, and nowhere else', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'OPTIONS']) {
      const answer = await answersTo(`${method} /api/profile HTTP/1.1\r\nContent-Length: 0\r\n\r\n`);
      const { status, headers } = parse(answer);
      expect(status).toBe('HTTP/1.1 400 Bad Request');
      expect(headers['deprecation']).toMatch(/^@\d+$/);
      expect(headers['link']).toContain('rel="successor-version"');
    }
    for (const path of ['/', '/docs/', '/livez', '/api/']) {
      const answer = await answersTo(`GET ${path} HTTP/1.1\r\n\r\n`);
      const headers = expectProblem(answer, '400 Bad Request', 'malformed-request');
      expect(headers).not.toHaveProperty('deprecation');
    }
  });

  test('HTTP/1.0 needs no host', async () => {
    expect(await answersTo('GET /livez HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 OK/);
  });
});

describe('a connection with an earlier request', () => {
  test('gets that answer, and no other', async () => {
    const answers = await answersTo(`${put('{}')}what is this?\r\n\r\n`);
    expect(answers).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(answers).toMatch(/^connection: close\r$/im);
    expect(answers.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  });

  test.each([
    ['changes', (name: string) => put(`{"username":"${name}"}`)],
    ['reads', () => `GET /api/profile/ HTTP/1.1\r\nHost: x\r\n${credentials}\r\n`],
  ])('gets the answers to all complete requests, of %s', async (_what, request) => {
    const requests = Array.from({ length: 150 }, (_, index) => request(`name-${index}`));
    const answers = await answersTo(`${requests.join('')}what is this?\r\n\r\n`);
    expect(answers.match(/HTTP\/1\.1 200 /g)).toHaveLength(150);
    expect(answers.match(/^connection: .*$/gim)?.indexOf('Connection: close')).toBe(149);
    expect(answers).not.toContain('HTTP/1.1 400');
  });

  test('gets no answer to one that has not arrived completely', async () => {
    const answers = await answersTo(
      `${put('{}')}PUT /api/profile/ HTTP/1.1\r\nHost: x\r\n${credentials}` +
        'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n',
    );
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
  });

  test('gets a problem with the headers of the contract if its body is malformed', async () => {
    for (const type of ['application/json', 'multipart/form-data; boundary=b']) {
      const answer = await answersTo(
        `PUT /api/profile/ HTTP/1.1\r\nHost: x\r\n${credentials}Content-Type: ${type}\r\n` +
          'Transfer-Encoding: chunked\r\n\r\nno length\r\n',
      );
      const headers = expectProblem(answer, '400 Bad Request', 'malformed-request');
      expect(headers['deprecation']).toMatch(/^@\d+$/);
    }
  });
});

test.each([
  ['GET', 'no length\r\n', '400 Bad Request', 'malformed-request'],
  [
    'PUT',
    `0\r\nX-Much: ${'x'.repeat(20_000)}\r\n\r\n`,
    '431 Request Header Fields Too Large',
    'headers-too-large',
  ],
])(
  'the problem of a malformed body of %s is documented, with the headers of the contract',
  async (method, body, status, code) => {
    const path = '/api/profile/';
    const answer = await answersTo(
      `${method} ${path} HTTP/1.1\r\nHost: x\r\n${credentials}Content-Type: application/json\r\n` +
        `Transfer-Encoding: chunked\r\n\r\n${body}`,
    );
    const headers = expectProblem(answer, status, code);
    expect(headers['deprecation']).toMatch(/^@\d+$/);
    const { body: text } = parse(answer);
    const documented = { status: Number(status.slice(0, 3)), headers, text, bytes: Buffer.from(text) };
    assertDocumented(method, path, { ...documented, body: JSON.parse(text) as unknown });
  },
);

test.each(['PATCH /api/profile/', 'POST /nowhere', 'POST /livez'])(
  'a malformed body is refused as such, and only once, where its request would have been refused anyway: %s',
  async (request) => {
    const answer = await answersTo(
      `${request} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n`,
    );
    expectProblem(answer, '400 Bad Request', 'malformed-request');
  },
);

test('a request that does not arrive in time gets a problem', async () => {
  const server = createServer(
    { connectionsCheckingInterval: 20, headersTimeout: 50, requestTimeout: 50 },
    (_request, response) => void response,
  );
  refuseUnreadable(server, '');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  for (const text of ['GET / HT', 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{']) {
    expectProblem(await answersTo(text, dial(port)), '408 Request Timeout', 'request-timeout');
  }
  server.close();
  await once(server, 'close');
});
