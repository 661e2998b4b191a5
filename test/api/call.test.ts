import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import express from 'express';
import { trackCalls } from '../../src/api/call.ts';
import { listen } from '../../src/api/server.ts';
import { reportUsage } from '../../src/deprecation/reports/report.ts';
import { readUsageQuery } from '../../src/deprecation/reports/usage-query.ts';
import { startBridge, type TestBridge } from '../support/bridge.ts';
import { startRedis, unusedPort, type RedisProcess } from '../support/redis.ts';
import { keysOf } from '../support/store.ts';
import { until } from '../support/until.ts';
import { redPng } from '../support/requests/pictures.ts';

let redis: RedisProcess;
let bridge: TestBridge;
let adminPort: number;
beforeAll(async () => {
  redis = await startRedis();
  adminPort = await unusedPort();
  bridge = await startBridge({ redisUrl: redis.url, adminPort });
});
afterAll(async () => {
  await bridge.close();
  await redis.stop();
});

/** Holds up every call at its authentication: Redis pauses each script that may write. */
async function whileRedisHangs(act: () => Promise<unknown>): Promise<void> {
  await bridge.store.call('CLIENT', 'PAUSE', '600000', 'WRITE');
  await act().finally(() => bridge.store.call('CLIENT', 'UNPAUSE'));
}

async function dial(url = bridge.url): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** A picture of one pixel, in Latin-1. */
const gif = Buffer.from('R0lGODdhAQABAIAAAP8AAP8AACwAAAAAAQABAAACAkQBADs=', 'base64').toString('latin1');

/** A figure of the admin port's metrics. */
async function metric(name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

async function requests(operation: string, organization: string): Promise<number> {
  const labels = `{operation="${operation}",organization="${organization}"}`;
  return await metric(`profile_bridge_deprecated_requests_total${labels}`);
}

async function player(id: string): Promise<{ headers: string; upload: () => Promise<number> }> {
  const organization = await bridge.newOrganization({}, id);
  const { apiKey } = await organization.newKey({ role: 'player', userId: 'u1' });
  const client = await organization.player('u1');
  const png = await redPng();
  return {
    headers: `Host: x\r\nX-Platform-Organization-Id: ${id}\r\nX-Api-Key: ${apiKey}\r\n`,
    upload: async () => {
      const form = new FormData();
      form.append('picture', new Blob([new Uint8Array(png)]), 'a.png');
      return (await client.request('PUT', '/api/profile/', { form })).status;
    },
  };
}

test('200 clients that disconnect during authentication leave no slot in use, and an upload succeeds', async () => {
  const { headers, upload } = await player('leaving');
  const sockets = await Promise.all(Array.from({ length: 200 }, () => dial()));
  const leave = async (socket: Socket): Promise<void> => {
    socket.write(
      `PUT /api/profile/ HTTP/1.1\r\n${headers}Content-Type: multipart/form-data; boundary=x\r\n` +
        'Content-Length: 1000000\r\n\r\n--x\r\n',
      () => socket.destroy(),
    );
    await once(socket, 'close');
  };
  await whileRedisHangs(() => Promise.all(sockets.map(leave)));
  await until(async () => (await requests('putProfile', 'leaving')) === 200);
  expect(await metric('profile_bridge_slots_in_use')).toBe(0);
  expect(await metric('profile_bridge_open_bodies')).toBe(0);
  expect(await upload()).toBe(200);
});

test('a connection that pipelines 800 requests and is closed leaves no slot in use', async () => {
  const { headers } = await player('pipelining');
  for (let connection = 0; connection < 3; connection++) {
    const socket = await dial();
    socket.write(`GET /api/profile/ HTTP/1.1\r\n${headers}\r\n`.repeat(800));
    await once(socket, 'data');
    socket.destroy();
  }
  // The first response of each connection came after the first hundred requests had begun. The others follow.
  let counted = 0;
  await until(async () => {
    const before = counted;
    counted = await requests('getProfile', 'pipelining');
    return counted >= 300 && counted === before && (await metric('profile_bridge_slots_in_use')) === 0;
  });
});

test('at most 100 requests of a connection that pipelines are in progress', async () => {
  const app = express();
  let begun = 0;
  let over = 0;
  let most = 0;
  const held: express.Response[] = [];
  app.use(trackCalls(() => over++));
  app.use((_request, response) => {
    begun++;
    most = Math.max(most, begun - over);
    held.push(response);
  });
  const server = await listen(app, '127.0.0.1', 0);
  const socket = await dial(`http://127.0.0.1:${server.port}`);
  socket.resume();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(300));
  await until(() => begun >= 100);
  await until(() => {
    for (const response of held.splice(0)) response.end();
    return over === 300;
  });
  socket.destroy();
  await server.drain();
  expect(most).toBe(100);
});

test.each(['GET', 'POST'])(
  'the response to every pipelined %s emits close when the connection is lost',
  async (method) => {
    const app = express();
    const begun: express.Response[] = [];
    let closed = 0;
    app.use(trackCalls(() => {}));
    app.use((_request, response) => {
      begun.push(response.on('close', () => closed++));
    });
    const server = await listen(app, '127.0.0.1', 0);
    const socket = await dial(`http://127.0.0.1:${server.port}`);
    socket.write(`${method} / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`.repeat(3));
    await until(() => begun.length === (method === 'GET' ? 3 : 1));
    socket.resetAndDestroy();
    await until(() => begun.length === 3 && begun.every(({ destroyed }) => destroyed));
    await until(() => closed === 3);
    await server.drain();
  },
);

test('connections that pipeline beyond the limit are closed, and others are served', async () => {
  const { headers } = await player('flooding');
  const sockets = await Promise.all(Array.from({ length: 40 }, () => dial()));
  let closed = 0;
  for (const socket of sockets) socket.resume().on('close', () => closed++);
  await whileRedisHangs(async () => {
    for (const socket of sockets) socket.write(`GET /api/profile/ HTTP/1.1\r\n${headers}\r\n`.repeat(1000));
    await until(() => closed > 0);
  });
  expect((await fetch(`${bridge.url}/livez`)).status).toBe(200);
  await until(async () => (await metric('profile_bridge_slots_in_use')) === 0);
  expect(closed).toBeLessThan(40);
  for (const socket of sockets) socket.resetAndDestroy();
});

test('all requests of a connection that closes are over, also those that had to wait', async () => {
  const app = express();
  let begun = 0;
  let over = 0;
  let held: express.Response | undefined;
  app.use(trackCalls(() => over++));
  app.use((request, response) => {
    begun++;
    if (request.url === '/held') held = response;
    else response.end();
  });
  const server = await listen(app, '127.0.0.1', 0);
  const socket = await dial(`http://127.0.0.1:${server.port}`);
  const head = ' HTTP/1.1\r\nHost: x\r\n\r\n';
  socket.write(`GET /held${head}${`GET /${head}`.repeat(1000)}`);
  await until(() => begun === 100);
  socket.resetAndDestroy();
  // The server reads nothing from a connection with waiting requests, so it notices only now.
  held?.end();
  await until(() => over === 1001);
  await server.drain();
});

test('300 pipelined calls whose connection is closed at once are counted as 300 calls of their key', async () => {
  const { headers } = await player('counted');
  const other = await startBridge({ redisUrl: redis.url, keyPrefix: bridge.config.keyPrefix });
  const socket = await dial(other.url);
  socket.resume();
  socket.end(`GET /api/profile/ HTTP/1.1\r\n${headers}\r\n`.repeat(300));
  await once(socket, 'close');
  await other.close();

  const now = Date.now();
  const query = readUsageQuery({ organization: 'counted', group: 'operation' }, now);
  if (query.kind !== 'ok') throw new Error(query.kind);
  const report = await reportUsage(bridge.store, bridge.config.keyPrefix, query.query, now);
  expect([report.calls, report.attributed, report.unattributed]).toEqual([300, 300, 0]);
});

test('user agents are recorded as UTF-8, or as Latin-1 if they are not', async () => {
  const { headers } = await player('agents');
  const socket = await dial();
  socket.resume();
  for (const agent of [Buffer.from('Zoë/1.0 ☃'), Buffer.from('Zoë/2.0', 'latin1')]) {
    socket.write(`GET /api/profile/ HTTP/1.1\r\n${headers}User-Agent: `);
    socket.write(agent);
    socket.write('\r\n\r\n');
  }
  const key = `${bridge.config.keyPrefix}{agents}:use:key:`;
  const agents = async () => {
    const [own = ''] = await keysOf(bridge.store, key);
    return Object.keys(await bridge.store.hgetall(own)).filter((field) => field.startsWith('a:'));
  };
  await until(async () => (await agents()).length === 2);
  expect((await agents()).toSorted()).toEqual(['a:Zoë/1.0 ☃', 'a:Zoë/2.0']);
  socket.destroy();
});

test('pipelined changes are made in order, and each request sees those before it', async () => {
  const { headers } = await player('ordered');
  const upload = (name: string): string => {
    const body =
      `--b\r\nContent-Disposition: form-data; name="username"\r\n\r\n${name}\r\n` +
      `--b\r\nContent-Disposition: form-data; name="f"; filename="a.gif"\r\n\r\n${gif}\r\n--b--\r\n`;
    return `Content-Type: multipart/form-data; boundary=b\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const change = (name: string): string => {
    const body = JSON.stringify({ username: name });
    return `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const names = Array.from({ length: 40 }, (_, index) => `name-${index}`);
  const socket = await dial();
  let answers = '';
  socket.on('data', (chunk) => (answers += String(chunk)));
  socket.end(
    names
      .map((name, index) => (index % 10 === 0 ? upload(name) : change(name)))
      .map(
        (put) => `PUT /api/profile/ HTTP/1.1\r\n${headers}${put}GET /api/profile/ HTTP/1.1\r\n${headers}\r\n`,
      )
      .join(''),
    'latin1',
  );
  await once(socket, 'close');
  const seen = [...answers.matchAll(/"username":"([^"]*)"/g)].map(([, name]) => name);
  expect(seen).toEqual(names.flatMap((name) => [name, name]));
});
