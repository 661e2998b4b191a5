import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startBridge, type TestBridge } from '../support/bridge.ts';
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
  socket.write(
    `PUT /api/profile/ HTTP/${version}\r\nHost: x\r\n${headers}X-Platform-Organization-Id: x\r\nX-Api-Key: wrong\r\n` +
      `Content-Type: multipart/form-data; boundary=x\r\nContent-Length: ${announced}\r\n\r\n`,
  );
  return socket;
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
    ['with Connection: close', '1.1', 'Connection: close\r\n'],
    ['over HTTP/1.0', '1.0', ''],
    ['that waited for 100 Continue', '1.1', 'Expect: 100-continue\r\n'],
  ])('%s', async (_client, version, headers) => {
    const { response, hadError } = await finishUpload(beginUpload(version, headers));
    expect(response).toMatch(/^HTTP\/1\.1 401 /);
    expect(response).toMatch(/"code":"invalid-api-key"/);
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

const nginx = '/usr/sbin/nginx';
(existsSync(nginx) ? test : test.skip)(
  'nginx, which closes upstream connections by default, passes every early refusal on',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'nginx-'));
    // nginx started by root works as another user.
    await chmod(folder, 0o755);
    const port = await unusedPort();
    await writeFile(
      join(folder, 'nginx.conf'),
      `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
     http {
       access_log off; client_max_body_size 16m;
       client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
       uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
       server { listen 127.0.0.1:${port}; location / { proxy_pass ${bridge.url}; } }
     }`,
    );
    const server = spawn(nginx, ['-p', folder, '-e', `${folder}/error.log`, '-c', `${folder}/nginx.conf`], {
      stdio: 'ignore',
    });
    const exited = once(server, 'exit');
    try {
      await until(() => isListening(port));
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
    } finally {
      server.kill();
      await exited;
      await rm(folder, { recursive: true, force: true });
    }
  },
);

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
  const socket = beginUpload('1.1', 'Connection: close\r\n');
  socket.resume();
  socket.on('error', () => {});
  const closed = untilClosed(socket);
  const sending = setInterval(() => socket.write('x'), 20);
  await closed;
  clearInterval(sending);
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
