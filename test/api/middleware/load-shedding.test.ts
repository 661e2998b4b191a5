import { once } from 'node:events';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import express from 'express';
import { trackCalls, type AccessRecord } from '../../../src/api/call.ts';
import { readyz } from '../../../src/api/health.ts';
import { createLoadShedding } from '../../../src/api/middleware/load-shedding.ts';
import type { Row } from '../../../src/api/operations.ts';
import { createPipeline } from '../../../src/api/pipeline.ts';
import { listen } from '../../../src/api/server.ts';
import { layerPolicy } from '../../../src/deprecation/policy/policy.ts';
import { authenticate } from '../../../src/redis/changes.ts';
import { startBridge, type TestBridge, type TestOrganization } from '../../support/bridge.ts';
import { startRedis, unusedPort, type RedisProcess } from '../../support/redis.ts';
import { until } from '../../support/until.ts';

let redis: RedisProcess;
let bridge: TestBridge;
let organization: TestOrganization;
let adminPort: number;
beforeAll(async () => {
  redis = await startRedis();
  adminPort = await unusedPort();
  bridge = await startBridge({ redisUrl: redis.url, adminPort });
  organization = await bridge.newOrganization({}, 'busy');
});
afterAll(async () => {
  await bridge.close();
  await redis.stop();
});

const open: (ClientRequest | Socket)[] = [];
afterEach(() => {
  jest.useRealTimers();
  for (const one of open.splice(0)) one.destroy();
});

/** Begins a PUT; its body is sent by the caller, or never. */
function startPut(apiKey: string, headers: Record<string, string | number>): ClientRequest {
  return beginRequest('PUT', '/api/profile/', apiKey, headers);
}

function beginRequest(
  method: string,
  path: string,
  apiKey: string,
  headers: Record<string, string | number>,
): ClientRequest {
  const sent = request(`${bridge.url}${path}`, {
    method,
    agent: false,
    headers: { 'x-api-key': apiKey, 'x-platform-organization-id': organization.id, ...headers },
  });
  sent.on('error', () => {});
  sent.flushHeaders();
  open.push(sent);
  return sent;
}

/** The statuses of 64 requests with a compressed body, sent at once. */
async function statusesOf64(method: string, path: string, apiKey: string, type: string, body: Buffer) {
  const headers = { 'content-type': type, 'content-length': body.length, 'content-encoding': 'gzip' };
  return await Promise.all(
    Array.from({ length: 64 }, async () => {
      const sent = beginRequest(method, path, apiKey, headers);
      sent.end(body);
      return (await responseTo(sent)).statusCode;
    }),
  );
}

async function responseTo(put: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(put, 'response')) as [IncomingMessage];
  response.resume();
  return response;
}

const large = {
  'content-type': 'multipart/form-data; boundary=x',
  'content-length': 1_000_000,
  expect: '100-continue',
};

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  const [, value = '0'] = new RegExp(`^${name.replace(/[{}]/g, '\\$&')} (\\S+)$`, 'm').exec(text) ?? [];
  return Number(value);
}

describe('unfinished bodies', () => {
  test('64 idle uploads of one key do not prevent uploads of another key', async () => {
    const greedy = await organization.newKey({ role: 'player', userId: 'greedy' });
    const puts = Array.from({ length: 64 }, () => startPut(greedy.apiKey, large));
    const outcomes = await Promise.all(
      puts.map((put) =>
        Promise.race([
          once(put, 'continue').then(() => 'waiting for the body'),
          responseTo(put).then(({ statusCode }) => statusCode),
        ]),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === 'waiting for the body')).toHaveLength(16);
    expect(outcomes.filter((outcome) => outcome === 503)).toHaveLength(48);
    expect(await metric('profile_bridge_open_bodies')).toBe(16);
    expect(await metric('profile_bridge_refusals_total{operation="putProfile",code="overloaded"}')).toBe(48);

    const { apiKey } = await organization.newKey({ role: 'player', userId: 'patient' });
    const put = startPut(apiKey, { ...large, 'content-length': 100_000 });
    await once(put, 'continue');
    put.end(Buffer.alloc(100_000));
    // Nothing but zeros: it was received.
    expect((await responseTo(put)).statusCode).toBe(400);
    // A key that has reached its own share is no sign that this instance is busy.
    const ready = await fetch(`${bridge.url}/readyz`);
    expect(await ready.json()).toEqual({ status: 'ok', degraded: [] });
  });

  test('one key has two lists of 16 MB in memory at a time; others are refused', async () => {
    const { apiKey } = await organization.newKey({ role: 'admin' });
    // Its end is invalid, so that only the refusals are 503.
    const list = Buffer.from(`[${'"a",'.repeat(4_000_000)}1]`);
    const headers = { 'content-type': 'application/json', 'content-length': list.length };
    const path = '/api/profile/username/denylist/';
    const requests = Array.from({ length: 4 }, () => beginRequest('PUT', path, apiKey, headers));
    const statuses = Promise.all(requests.map(async (sent) => (await responseTo(sent)).statusCode));
    // All of them are complete at the same time, or the first might have been checked before the last arrives.
    await Promise.all(
      requests.map((sent) => new Promise((resolve) => sent.write(list.subarray(0, -1), resolve))),
    );
    for (const sent of requests) sent.end(list.subarray(-1));
    expect((await statuses).toSorted((a = 0, b = 0) => a - b)).toEqual([400, 400, 503, 503]);
    expect(await metric('profile_bridge_open_bodies')).toBe(0);
  });

  test.each([
    [1, 16],
    [50_000_000, 8],
    [180_000_000, 2],
    [10_000_000_000, 1],
  ])('bodies that take %i bytes of memory: %i of one key', (memory, most) => {
    const { openBodies } = createLoadShedding();
    const enter = (): void => openBodies.enter('key', 1_000_000).reserve(memory);
    for (let n = 0; n < most; n++) enter();
    expect(enter).toThrow('Too many bodies');
    expect(() => openBodies.enter('other', 1_000_000).reserve(memory)).not.toThrow();
  });

  test('64 compressed bodies of one key do not take the memory of 64 pictures or lists, however short they are', async () => {
    const player = await organization.newKey({ role: 'player', userId: 'compressed' });
    const admin = await organization.newKey({ role: 'admin' });
    const upload = Buffer.concat([
      Buffer.from('--x\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n'),
      Buffer.alloc(1_000_000),
      Buffer.from('\r\n--x--\r\n'),
    ]);
    const list = Buffer.from(`[${' '.repeat(200_000)}1]`);
    for (const [method, path, apiKey, type, body, status] of [
      ['PUT', '/api/profile/', player.apiKey, large['content-type'], upload, 415],
      ['DELETE', '/api/profile/username/deny/', admin.apiKey, 'application/json', list, 400],
    ] as const) {
      expect(new Set(await statusesOf64(method, path, apiKey, type, gzipSync(body)))).toEqual(
        new Set([status, 503]),
      );
      expect(await metric('profile_bridge_open_bodies')).toBe(0);
    }
  });

  test('64 compressed profiles of one key are small, and all of them are answered', async () => {
    const { apiKey } = await organization.newKey({ role: 'player', userId: 'compressed' });
    const statuses = await statusesOf64('PUT', '/api/profile/', apiKey, 'application/json', gzipSync('{}'));
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  test('2,000 unfinished PUTs without a valid key do not prevent a valid PUT', async () => {
    const head =
      'PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nX-Platform-Organization-Id: busy\r\nX-Api-Key: wrong\r\n' +
      'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{';
    for (let i = 0; i < 2000; i += 100) {
      const sockets = Array.from({ length: 100 }, () =>
        connect(Number(new URL(bridge.url).port), '127.0.0.1'),
      );
      open.push(...sockets);
      for (const socket of sockets) socket.write(head);
      const responses = await Promise.all(sockets.map((socket) => once(socket, 'data')));
      for (const [response] of responses) expect(String(response)).toMatch(/^HTTP\/1\.1 (401|429) /);
    }
    const player = await organization.player('u1');
    expect((await player.request('PUT', '/api/profile/', { json: {} })).status).toBe(200);
    expect(await metric('profile_bridge_slots_in_use')).toBe(0);
    expect(await metric('profile_bridge_open_bodies')).toBe(0);
  });

  test('a body that arrives too slowly is refused with 408, and its connection closed', async () => {
    const { apiKey } = await organization.newKey({ role: 'player', userId: 'slow' });
    jest.useFakeTimers({
      doNotFake: [
        'setTimeout',
        'clearTimeout',
        'setImmediate',
        'clearImmediate',
        'nextTick',
        'performance',
        'Date',
        'queueMicrotask',
        'hrtime',
      ],
    });
    const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1');
    open.push(socket);
    const bodiesBefore = await metric('profile_bridge_open_bodies');
    socket.write(
      `PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nX-Platform-Organization-Id: busy\r\nX-Api-Key: ${apiKey}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{',
    );
    await until(async () => (await metric('profile_bridge_open_bodies')) > bodiesBefore);
    jest.advanceTimersByTime(10_000);
    const [response] = (await once(socket, 'data')) as [Buffer];
    expect(String(response)).toMatch(/^HTTP\/1\.1 408 /);
    expect(String(response)).toMatch(/^connection: close\r$/im);
  });
});

test('an instance without a free slot refuses with 503, and is ready but degraded', async () => {
  const { apiKey } = await organization.newKey({ role: 'player', userId: 'u2' });
  const load = createLoadShedding({
    slots: 1,
    largeBodies: 1,
    largeBodiesPerSender: 1,
    smallBodiesPerSender: 1,
  });
  const { promise: isWorkDone, resolve: finishWork } = withResolver();
  const { promise: hasBegun, resolve: begin } = withResolver();
  const settled: AccessRecord[] = [];
  const app = express();
  app.use(trackCalls((record) => settled.push(record)));
  const row: Row = {
    operation: 'getProfile',
    method: 'get',
    path: '/api/profile/',
    role: 'any',
    needsUser: true,
    authenticate,
    body: undefined,
    handler: async () => {
      begin();
      await isWorkDone;
      return { kind: 'no-content' };
    },
  };
  app.use(
    createPipeline([row], {
      store: bridge.store,
      keyPrefix: bridge.config.keyPrefix,
      organizationHeader: bridge.config.organizationHeader,
      deprecation: { current: { policy: layerPolicy(), headers: [] } },
      load,
      cutover: {
        readMode: () => 'native',
        admitChange: () => {
          throw new Error('nothing changes here');
        },
      },
      queueing: () => {
        throw new Error('nothing changes here');
      },
    }),
  );
  app.get(
    '/readyz',
    readyz({
      store: bridge.store,
      isDraining: () => false,
      forwardsAll: () => false,
      knowsAuthority: () => true,
      load,
      arePicturesAvailable: () => true,
    }),
  );
  const server = await listen(app, '127.0.0.1', 0);
  const url = `http://127.0.0.1:${server.port}`;
  const get = async (): Promise<Response> =>
    await fetch(`${url}/api/profile/`, {
      headers: { 'x-api-key': apiKey, 'x-platform-organization-id': organization.id },
    });
  try {
    const first = get();
    await hasBegun;
    const second = await get();
    expect([second.status, await second.json()]).toMatchObject([503, { code: 'overloaded' }]);
    expect(second.headers.get('retry-after')).toBe('1');
    expect(settled).toMatchObject([{ status: 503, code: 'overloaded' }]);
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'degraded', degraded: ['overloaded'] },
    ]);

    finishWork();
    expect((await first).status).toBe(204);
    expect((await get()).status).toBe(204);
    expect(load.slots.inUse()).toBe(0);
  } finally {
    finishWork();
    await server.drain();
  }
});

function withResolver(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
