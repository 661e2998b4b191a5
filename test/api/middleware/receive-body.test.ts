import { once } from 'node:events';
import { createServer, request, type ClientRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { collectGarbage } from '../../support/garbage.ts';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import express, { type Request } from 'express';
import { receiveBody } from '../../../src/api/middleware/receive-body.ts';

const limit = 5_000_000;
/** The request as the server sees it, and what receiving its body came to. */
let upload: IncomingMessage;
let outcome: Promise<unknown>;
let client: ClientRequest;
let close: () => Promise<void>;

beforeEach(async () => {
  const app = express();
  const begun = new Promise<void>((resolve) => {
    app.use((incoming: Request, response) => {
      upload = incoming;
      outcome = receiveBody(incoming, response, { limit, unreadable: 'invalid-body' }).then(
        ({ length }) => length,
        (error: unknown) => error,
      );
      resolve();
    });
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  jest.useFakeTimers({
    doNotFake: ['setTimeout', 'setImmediate', 'nextTick', 'queueMicrotask', 'performance'],
  });
  client = request({ port: (server.address() as AddressInfo).port, method: 'PUT', agent: false });
  client.on('error', () => {});
  client.flushHeaders();
  await begun;
  close = async () => {
    client.destroy();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
});
afterEach(async () => {
  jest.useRealTimers();
  await close();
});

/** Sends so many bytes, which arrive; then ten seconds pass. */
async function send(bytes: number): Promise<void> {
  const from = upload.socket.bytesRead;
  client.write(Buffer.alloc(bytes));
  while (upload.socket.bytesRead < from + bytes) await once(upload, 'data');
  jest.advanceTimersByTime(10_000);
}

test('a body of 5 MB at 256 kbit/s is received', async () => {
  const perPeriod = 320_000;
  for (let left = limit; left > perPeriod; left -= perPeriod) await send(perPeriod);
  client.end(Buffer.alloc(limit % perPeriod));
  expect(await outcome).toBe(limit);
});

test('a body that never drops below the minimum rate is refused after 180 seconds all the same', async () => {
  for (let seconds = 10; seconds < 180; seconds += 10) await send(50_000);
  expect(await Promise.race([outcome, Promise.resolve('still receiving')])).toBe('still receiving');
  await send(50_000);
  expect(await outcome).toMatchObject({ status: 408, code: 'request-timeout' });
});

test('a body that arrives in chunks of one byte takes little memory', async () => {
  const memory = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = memory();
  let most = 0;
  upload.on('end', () => {
    most = memory();
  });
  const socket = client.socket ?? (await once(client, 'socket'))[0];
  for (let sent = 0; sent < 1_000_000; sent += 10_000) {
    if (!socket.write('1\r\nx\r\n'.repeat(10_000))) await once(socket, 'drain');
  }
  socket.write('0\r\n\r\n');
  expect(await outcome).toBe(1_000_000);
  expect(most - before).toBeLessThan(50_000_000);
});
