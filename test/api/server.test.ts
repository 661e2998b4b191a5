import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import express from 'express';
import { listen } from '../../src/api/server.ts';
import { startBridge, type TestBridge } from '../support/bridge.ts';
import { startStopwatch } from '../support/stopwatch.ts';

test('a draining server answers what was sent, on idle connections too, and says that it closes', async () => {
  const bridge = await startBridge();
  const { port } = new URL(bridge.url);
  const idle = connect(Number(port), '127.0.0.1');
  await once(idle, 'connect');
  idle.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(idle, 'data');

  const closed = bridge.close();
  idle.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
  const [late] = (await once(idle, 'data')) as [Buffer];
  expect(String(late)).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(String(late)).toMatch(/^connection: close\r$/im);
  await closed;
});

test('a request that was under way when the draining began is answered, and its connection closed with it', async () => {
  const bridge = await startBridge();
  const { apiKey } = await (
    await bridge.newOrganization({}, 'drained')
  ).newKey({ role: 'player', userId: 'u1' });
  const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1');
  socket.write(
    'PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nX-Platform-Organization-Id: drained\r\n' +
      `X-Api-Key: ${apiKey}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{`,
  );
  const [proceed] = (await once(socket, 'data')) as [Buffer];
  expect(String(proceed)).toMatch(/^HTTP\/1\.1 100 /);

  const closed = bridge.close();
  const answered = once(socket, 'data');
  const ended = once(socket, 'end');
  socket.write('}');
  const [answer] = (await answered) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(String(answer)).toMatch(/^connection: close\r$/im);
  await ended;
  await closed;
});

test('a draining server answers all changes that a client has pipelined', async () => {
  const bridge = await startBridge();
  const { apiKey } = await (
    await bridge.newOrganization({}, 'pipelined')
  ).newKey({ role: 'player', userId: 'u1' });
  const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1');
  let answers = '';
  socket.on('data', (chunk) => (answers += String(chunk)));
  await once(socket, 'connect');

  const closed = bridge.close();
  const put = (name: string): string => {
    const body = JSON.stringify({ username: name });
    return (
      'PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nX-Platform-Organization-Id: pipelined\r\n' +
      `X-Api-Key: ${apiKey}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    );
  };
  socket.write(['a', 'b', 'c'].map(put).join(''));
  await once(socket, 'end');
  expect(answers.match(/"username":"\w"/g)).toEqual(['"username":"a"', '"username":"b"', '"username":"c"']);
  expect(answers.match(/^connection: .*$/gim)).toEqual([
    'Connection: keep-alive',
    'Connection: keep-alive',
    'Connection: close',
  ]);
  await closed;
});

test('a stop does not wait for a client that was refused and sends no more', async () => {
  const server = await listen(
    express().use((_request, response) => void response.status(401).end()),
    '127.0.0.1',
    0,
  );
  const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.resume().write('PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{');
  await once(socket, 'end');
  const elapsed = startStopwatch();
  await server.drain();
  expect(elapsed()).toBeLessThan(3000);
  socket.destroy();
});

describe('a connection without activity', () => {
  const timeout = 200;

  test('is closed if its client does not read the response', async () => {
    const app = express();
    const closed = new Promise<void>((resolve) => {
      app.use((_request, response) => {
        response.on('close', resolve);
        // More than the buffers of both sides hold.
        response.end(Buffer.alloc(64 * 1024 * 1024));
      });
    });
    const server = await listen(app, '127.0.0.1', 0, { timeout });
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await closed;
    socket.destroy();
    await server.drain();
  });

  test('stays open while the response is being prepared', async () => {
    const app = express();
    app.use((_request, response) => {
      setTimeout(() => response.end('done'), 3 * timeout);
    });
    const server = await listen(app, '127.0.0.1', 0, { timeout });
    expect(await (await fetch(`http://127.0.0.1:${server.port}/`)).text()).toBe('done');
    await server.drain();
  });
});

test('a CONNECT that is pipelined after an unanswered request does not keep a server from stopping', async () => {
  const server = await listen(
    express().use(() => {}),
    '127.0.0.1',
    0,
  );
  const socket = connect(server.port, '127.0.0.1');
  socket.on('error', () => {}).resume();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\nCONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'close');
  await server.drain();
});

test('a port in use is one plain line with the remedy', async () => {
  const bridge = await startBridge();
  const port = Number(new URL(bridge.url).port);
  await expect(startBridge({ port })).rejects.toThrow(/port \d+ on 127\.0\.0\.1 is in use: .* set PORT/);
  await bridge.close();
});

test('requests and responses are created with the prototypes of Express, which need not change them', async () => {
  const bridge = await startBridge();
  const set = Object.setPrototypeOf;
  const changed: unknown[] = [];
  Object.setPrototypeOf = (target: object, prototype: object | null) => {
    if (Object.getPrototypeOf(target) !== prototype) changed.push(target);
    return set(target, prototype);
  };
  try {
    const agent = new Agent();
    const sent = request(`${bridge.url}/livez`, { agent }).end();
    await once(sent, 'response');
    expect(changed).toEqual([]);
  } finally {
    Object.setPrototypeOf = set;
    await bridge.close();
  }
});

describe('a raw connection', () => {
  let bridge: TestBridge;
  beforeAll(async () => {
    bridge = await startBridge();
  });
  afterAll(() => bridge.close());

  /** Sends these bytes; returns everything received until the server has closed. */
  async function exchange(text: string, send: 'end' | 'write' = 'end'): Promise<string> {
    const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1');
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += String(chunk)));
    // With `end`, the client closes its side at once.
    socket[send](text);
    await once(socket, 'close');
    return received;
  }

  test('that the client has half closed still gets its responses', async () => {
    const { id, newKey } = await bridge.newOrganization();
    const { apiKey } = await newKey({ role: 'player', userId: 'u1' });
    const headers = `Host: x\r\nX-Platform-Organization-Id: ${id}\r\nX-Api-Key: ${apiKey}\r\n`;
    const received = await exchange(`GET /api/profile/ HTTP/1.1\r\n${headers}\r\n`.repeat(3));
    expect(received.match(/HTTP\/1\.1 404 /g)).toHaveLength(3);
  });

  test('that the client has half closed still has its change stored', async () => {
    const { id, newKey } = await bridge.newOrganization();
    const { apiKey } = await newKey({ role: 'player', userId: 'u1' });
    const body = '{"username":"ada"}';
    const received = await exchange(
      `PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nX-Platform-Organization-Id: ${id}\r\nX-Api-Key: ${apiKey}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(received).toMatch(/^HTTP\/1\.1 200 /);
    expect(received).toContain(body);
  });

  test('that has no body leaves the connection open, however quickly it is answered', async () => {
    const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1');
    for (const path of ['/livez', '/nowhere', '/livez']) {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      expect(String(answer)).toMatch(/^connection: keep-alive\r$/im);
    }
    socket.destroy();
  });

  test('with two Host headers is refused with 400', async () => {
    const received = await exchange('GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n');
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    expect(received).toContain('more than one Host header');
  });

  test.each([
    ['1.1', 'Transfer-Encoding: gzip, chunked'],
    ['1.1', 'Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked'],
    ['1.0', 'Connection: keep-alive\r\nTransfer-Encoding: chunked'],
  ])('with a transfer coding that is not read is refused with 400: HTTP/%s, %s', async (version, headers) => {
    const received = await exchange(`GET /livez HTTP/${version}\r\nHost: a\r\n${headers}\r\n\r\n0\r\n\r\n`);
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    expect(received).toContain('an unsupported Transfer-Encoding (only chunked is supported, in HTTP/1.1)');
    expect(received).toMatch(/^connection: close\r$/im);
  });

  test.each(['http://[/api/profile/', 'http://', 'foo://a', 'ftp://a/api/profile/'])(
    'with a target that is neither a path nor an http URL, %s, is refused with 400',
    async (target) => {
      const received = await exchange(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect(received).toMatch(/^HTTP\/1\.1 400 /);
      expect(received).toMatch(/^content-type: application\/problem\+json/im);
      expect(received).toContain('a target that is neither a path nor an http URL');
    },
  );

  test.each(['%@h', 'ada:secret@h', '@h', 'h%41'])(
    'with a target whose host is %s is refused with a problem',
    async (host) => {
      const received = await exchange(`GET http://${host}/api/profile/ HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect(received).toMatch(/^HTTP\/1\.1 400 /);
      expect(received).toContain('"code":"malformed-request"');
    },
  );

  test.each(['http://h', 'HTTP://h:80/livez', 'http://[::1]:8080/livez', 'https://a_b.example:?x'])(
    'with the target %s, an http URL, is answered like its path',
    async (target) => {
      const received = await exchange(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect(received).toMatch(target.endsWith('/livez') ? /^HTTP\/1\.1 200 / : /"code":"not-found"/);
    },
  );

  test('with CONNECT is answered like any other method that no path has', async () => {
    const received = await exchange('CONNECT /api/profile/ HTTP/1.1\r\nHost: x\r\n\r\n', 'write');
    expect(received).toMatch(/^HTTP\/1\.1 405 /);
    expect(received).toMatch(/^allow: GET, HEAD, PUT, OPTIONS\r$/im);
    expect(received).toMatch(/^deprecation: @\d+\r$/im);
    expect(received).toMatch(/^connection: close\r$/im);
    for (const target of ['proxy.example:443', '127.0.0.1:443']) {
      const refused = await exchange(`CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`, 'write');
      expect(refused).toMatch(/^HTTP\/1\.1 400 /);
      expect(refused).toMatch(/^content-type: application\/problem\+json/im);
    }
  });

  test('gets 100 Continue with valid credentials, and a refusal with others', async () => {
    const received = await exchange(
      'PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nX-Platform-Organization-Id: x\r\nX-Api-Key: wrong\r\n' +
        'Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n',
      'write',
    );
    expect(received).toMatch(/^HTTP\/1\.1 401 /);
    expect(received).toMatch(/^connection: close\r$/im);
  });

  test('with thousands of small headers loses none of them', async () => {
    const received = await exchange(
      `GET /livez HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(2500)}X-Request-Id: the-last\r\n\r\n`,
    );
    expect(received).toMatch(/^x-request-id: the-last\r$/im);
  });
});
