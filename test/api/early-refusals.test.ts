import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import http2 from 'node:http2';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import express from 'express';
import { listen } from '../../src/api/server.ts';
import { startBridge, type TestBridge } from '../support/bridge.ts';
import { collectGarbage } from '../support/garbage.ts';
import { unusedPort } from '../support/redis.ts';
import { until } from '../support/until.ts';

let bridge: TestBridge;
beforeAll(async () => {
  bridge = await startBridge();
});
afterAll(() => bridge.close());

const announced = 8 * 1024 * 1024;
const part = Buffer.alloc(64 * 1024);

/** Begins an upload that is refused before its body is there. */
function beginUpload(version: string, headers = '', url = bridge.url): Socket {
  // The server's end must not end this side: the client goes on sending.
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true });
  socket.write(headOf(version, headers));
  return socket;
}

function headOf(version: string, headers = ''): string {
  return (
    `PUT /api/profile/ HTTP/${version}\r\nHost: x\r\n${headers}X-Platform-Organization-Id: x\r\nX-Api-Key: wrong\r\n` +
    `Content-Type: multipart/form-data; boundary=x\r\nContent-Length: ${announced}\r\n\r\n`
  );
}

/** Sends the rest of the body once the response is there; resolves to whether the connection then closed without an error. */
async function finishUpload(socket: Socket): Promise<{ response: string; hadError: boolean }> {
  let response = '';
  socket.on('data', (chunk: Buffer) => (response += String(chunk)));
  socket.on('error', () => {});
  const closed = untilClosed(socket);
  await Promise.race([once(socket, 'end'), closed]);
  for (let sent = 0; sent < announced && !socket.destroyed; sent += part.length) {
    await new Promise((resolve) => socket.write(part, resolve));
  }
  socket.end();
  return { response, hadError: await closed };
}

/** Whether the connection closed because of an error. */
function untilClosed(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    socket.once('close', resolve);
  });
}

describe('a client that keeps sending its body after it was refused gets the response and no reset', () => {
  test.each([
    ['that would keep its connection', '1.1', ''],
    ['with Connection: close', '1.1', 'Connection: close\r\n'],
    ['over HTTP/1.0', '1.0', ''],
    ['that waited for 100 Continue', '1.1', 'Expect: 100-continue\r\n'],
  ])('%s', async (_client, version, headers) => {
    const { response, hadError } = await finishUpload(beginUpload(version, headers));
    expect(response).toMatch(/^HTTP\/1\.1 401 /);
    expect(response).toMatch(/^connection: close\r$/im);
    expect(response).toMatch(/"code":"invalid-api-key"/);
    expect(hadError).toBe(false);
  });

  test('that pipelines another upload, which is not answered', async () => {
    const socket = beginUpload('1.1');
    socket.write(Buffer.alloc(announced));
    socket.write(headOf('1.1'));
    const { response, hadError } = await finishUpload(socket);
    expect(response.match(/^HTTP/gm)).toHaveLength(1);
    expect(hadError).toBe(false);
  });

  test('from an instance that is draining', async () => {
    const draining = await startBridge();
    const drained = draining.close();
    const { response, hadError } = await finishUpload(beginUpload('1.1', '', draining.url));
    expect(response).toMatch(/^connection: close\r$/im);
    expect(response).toMatch(/"code":"invalid-api-key"/);
    expect(hadError).toBe(false);
    await drained;
  });
});

describe('a response that is sent at once', () => {
  let retired: TestBridge;
  beforeAll(async () => {
    const deprecation = { deprecatedAt: 0, sunsetAt: 1, afterSunset: 'gone' as const };
    retired = await startBridge({ deprecation });
  });
  afterAll(() => retired.close());

  describe.each([
    ['410', 'PUT /api/profile/', () => retired],
    ['405', 'PATCH /api/profile/', () => bridge],
    ['204', 'OPTIONS /api/profile/', () => bridge],
    ['404', 'POST /nowhere', () => bridge],
    ['405', 'POST /livez', () => bridge],
    ['200', 'GET /livez', () => bridge],
  ])('with %s to %s', (status, request, serving) => {
    const head = (length: number): string =>
      `${request} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;
    const dial = (): Socket => connect(Number(new URL(serving().url).port), '127.0.0.1');

    test('keeps the connection if the body has come with the headers', async () => {
      const socket = dial();
      for (let sent = 0; sent < 2; sent++) {
        socket.write(`${head(2)}{}`);
        const [response] = (await once(socket, 'data')) as [Buffer];
        expect(String(response)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
        expect(String(response)).toMatch(/^connection: keep-alive\r$/im);
      }
      socket.destroy();
    });

    test('closes it if a part of the body is yet to come', async () => {
      const socket = dial();
      let response = '';
      socket.on('data', (chunk: Buffer) => (response += String(chunk)));
      socket.write(`${head(3)}{}`);
      await once(socket, 'end');
      expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(response).toMatch(/^connection: close\r$/im);
    });
  });
});

/** Uses a proxy that listens on the port, in a folder of its own, started with this configuration. */
async function withProxy(
  { program, args, configuration }: Proxy,
  use: (port: number) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'proxy-'));
  // nginx started by root works as another user.
  await chmod(folder, 0o755);
  const port = await unusedPort();
  const file = join(folder, 'proxy.conf');
  await writeFile(file, configuration(port, folder));
  const server = spawn(program, args(file, folder), { stdio: 'ignore' });
  const exited = once(server, 'exit');
  try {
    await until(() => isListening(port));
    await use(port);
  } finally {
    server.kill();
    await exited;
    await rm(folder, { recursive: true, force: true });
  }
}

interface Proxy {
  program: string;
  args: (file: string, folder: string) => string[];
  configuration: (port: number, folder: string) => string;
}

const nginx: Proxy = {
  program: '/usr/sbin/nginx',
  args: (file, folder) => ['-p', folder, '-e', `${folder}/error.log`, '-c', file],
  configuration: (port, folder) =>
    `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
     http {
       access_log off; client_max_body_size 16m;
       client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
       uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
       server { listen 127.0.0.1:${port}; location / { proxy_pass ${bridge.url}; } }
     }`,
};

const haproxy: Proxy = {
  program: '/usr/sbin/haproxy',
  args: (file) => ['-db', '-f', file],
  configuration: (port) =>
    `defaults
       mode http
       timeout connect 2s
       timeout client 10s
       timeout server 10s
     frontend public
       bind 127.0.0.1:${port} proto h2
       default_backend bridge
     backend bridge
       server bridge1 ${new URL(bridge.url).host}
`,
};

const testWith = ({ program }: Proxy) => (existsSync(program) ? test : test.skip);

testWith(nginx)(
  'nginx, which closes upstream connections by default, passes every early refusal on',
  async () => {
    await withProxy(nginx, async (port) => {
      const statuses: number[] = [];
      for (let upload = 0; upload < 20; upload++) {
        const response = await fetch(`http://127.0.0.1:${port}/api/profile/`, {
          method: 'PUT',
          headers: {
            'x-api-key': 'wrong',
            'x-platform-organization-id': 'x',
            'content-type': 'application/json',
          },
          body: Buffer.alloc(announced),
        });
        await response.arrayBuffer();
        statuses.push(response.status);
      }
      expect(statuses).toEqual(Array.from({ length: 20 }, () => 401));
    });
  },
);

testWith(haproxy)(
  'HAProxy reads no request of one client as the body that another one has left unsent',
  async () => {
    await withProxy(haproxy, async (port) => {
      const url = `http://127.0.0.1:${port}`;
      for (let upload = 0; upload < 3; upload++) expect(await leaveUploadUnsent(url)).toBe(401);
      const statuses = await Promise.all(
        Array.from({ length: 6 }, () => overHttp2(url, { ':path': '/livez' })),
      );
      expect(statuses).toEqual(Array.from({ length: 6 }, () => 200));
    });
  },
);

/** Begins an upload over HTTP/2, on a connection of its own, and cancels it once it is refused; the status. */
async function leaveUploadUnsent(url: string): Promise<number> {
  const headers = {
    ':method': 'PUT',
    ':path': '/api/profile/',
    'x-api-key': 'wrong',
    'x-platform-organization-id': 'x',
    'content-type': 'application/json',
    'content-length': 100_000,
  };
  return await overHttp2(url, headers, Buffer.alloc(20_000));
}

/** A session that is closed stays open, too, while something of its stream is unread. */
const sessions: http2.ClientHttp2Session[] = [];
afterAll(() => {
  for (const session of sessions) session.destroy();
});

/** Sends a request over HTTP/2, on a connection of its own, or only a part of it, and cancels it once there is a status. */
async function overHttp2(url: string, headers: http2.OutgoingHttpHeaders, body?: Buffer): Promise<number> {
  const session = http2.connect(url);
  sessions.push(session);
  const stream = session.request(headers);
  stream.on('error', () => {});
  if (body !== undefined) stream.write(body);
  try {
    const signal = AbortSignal.timeout(5000);
    const [answer] = (await once(stream, 'response', { signal })) as [http2.IncomingHttpHeaders];
    return Number(answer[':status']);
  } finally {
    stream.close(http2.constants.NGHTTP2_CANCEL);
    session.close();
  }
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test('a refused client that never stops sending is cut off', async () => {
  const app = express().use((_request, response) => {
    response.status(401).end();
  });
  const server = await listen(app, '127.0.0.1', 0, { timeout: 500 });
  const socket = beginUpload('1.1', '', `http://127.0.0.1:${server.port}`);
  socket.resume();
  socket.on('error', () => {});
  const closed = untilClosed(socket);
  const sending = setInterval(() => socket.write('x'), 20);
  await closed;
  clearInterval(sending);
  await server.drain();
});

test('the connection of a refused client is not kept in memory once it has closed', async () => {
  const connections: WeakRef<object>[] = [];
  const closed: Promise<unknown>[] = [];
  const app = express().use(({ socket }, response) => {
    connections.push(new WeakRef(socket));
    closed.push(once(socket, 'close'));
    response.status(401).end();
  });
  const server = await listen(app, '127.0.0.1', 0, { timeout: 3_600_000 });
  for (let upload = 0; upload < 10; upload++) {
    const socket = beginUpload('1.1', '', `http://127.0.0.1:${server.port}`);
    socket.resume();
    await once(socket, 'end');
    socket.end();
    await Promise.all(closed.splice(0));
  }
  await until(() => {
    collectGarbage();
    return connections.filter((connection) => connection.deref() !== undefined).length <= 1;
  });
  await server.drain();
});

test('what a refused client sends after its body is not taken for another request', async () => {
  const socket = beginUpload('1.1', 'Connection: close\r\n');
  let response = '';
  socket.on('data', (chunk: Buffer) => (response += String(chunk)));
  socket.on('error', () => {});
  const closed = untilClosed(socket);
  await Promise.race([once(socket, 'end'), closed]);
  socket.end(Buffer.concat([Buffer.alloc(announced), Buffer.from('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')]));
  await closed;
  expect(response.match(/HTTP\/1\.1 /g)).toHaveLength(1);
});
