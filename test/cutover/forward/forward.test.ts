import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setImmediate as nextTurn, setInterval } from 'node:timers/promises';
import { runInThisContext } from 'node:vm';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { createLog } from '../../../src/log.ts';
import { startBridge } from '../../support/bridge.ts';
import { unusedPort } from '../../support/redis.ts';
import { startLegacyBridge, type LegacyBridge } from '../../support/legacy/bridge.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { until } from '../../support/until.ts';

let here: LegacyBridge;
let player: string;

beforeAll(async () => {
  here = await startLegacyBridge({}, { prefix: '/old' });
  player = await here.player('u1');
});
afterAll(() => here.close());
afterEach(() => {
  Object.assign(here.legacy.behaviour, {
    failWith: undefined,
    reset: undefined,
    cutOff: false,
    gzip: false,
    override: undefined,
    gate: undefined,
  });
  here.legacy.received.length = 0;
});

/** Sends a request whose response is read byte by byte, as it comes. */
async function rawRequest(method: string, path: string, headers: Record<string, string>, body?: Buffer) {
  const { hostname, port } = new URL(here.bridge.url);
  const sent = httpRequest({ hostname, port, method, path, headers, agent: new Agent() });
  // The bridge may respond and close the connection before it has read all of the body.
  sent.on('error', () => {});
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) };
}

const credentials = (): Record<string, string> => ({
  'x-api-key': player,
  'x-platform-organization-id': here.organization.id,
});

test.each(['shadow', 'mirror'] as const)(
  'in %s, a rate limit does not apply to what is forwarded',
  async (mode) => {
    const limited = await startLegacyBridge({ rateLimit: { requests: 1, seconds: 60 } }, {}, mode);
    try {
      const key = await limited.player('u1');
      const init = { body: '{}', headers: { 'content-type': 'application/json' } };
      const statuses = [];
      for (let n = 0; n < 3; n++) {
        statuses.push((await limited.send(key, 'PUT', '/api/profile/', init)).status);
        statuses.push((await limited.send(key, 'GET', '/api/profile/')).status);
      }
      expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
    } finally {
      await limited.close();
    }
  },
);

describe('in shadow mode', () => {
  test('the legacy service answers, in its own words and spacing, and Redis is not written', async () => {
    const put = await here.send(player, 'PUT', '/api/profile/', {
      body: JSON.stringify({ username: '  Ada ' }),
      headers: { 'content-type': 'application/json' },
    });
    expect(put.status).toBe(200);
    expect(await put.text()).toBe('{\n   "username": "Ada"\n}');
    const got = await here.send(player, 'GET', '/api/profile');
    expect(await got.text()).toBe('{\n   "username": "Ada"\n}');
    expect(got.headers.get('content-type')).toBe('application/json;charset=UTF-8');
    expect(got.headers.get('x-powered-by')).toBe('legacy');
    const stored = await here.bridge.store.exists(`${here.organization.base}p:u1`);
    expect(stored).toBe(0);
  });

  test('every forwarded response has the bridge’s own headers and no hop-by-hop headers', async () => {
    here.legacy.behaviour.override = {
      headers: {
        'content-type': 'application/json',
        'cache-control': 'public, max-age=60',
        'access-control-allow-origin': '*',
        connection: 'x-between-us, keep-alive',
        'x-between-us': '1',
        'x-of-legacy': 'caf\u00e9',
      },
      chunks: [Buffer.from('{}')],
    };
    const { headers } = await rawRequest('GET', '/api/profile/', {
      ...credentials(),
      'x-request-id': 'mine',
    });
    expect(headers['cache-control']).toBe('private, no-store');
    expect(headers.deprecation).toMatch(/^@\d+$/);
    expect(headers['x-request-id']).toBe('mine');
    expect(headers['x-of-legacy']).toBe('caf\u00e9');
    expect(headers['x-between-us']).toBeUndefined();
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });

  test('a request reaches the legacy service unchanged, without its hop-by-hop headers', async () => {
    await rawRequest('GET', '/api/profile/?a=b&c=%20', {
      ...credentials(),
      'X-Odd': 'caf\u00e9',
      TE: 'trailers',
      Connection: 'x-hop',
      'X-Hop': '1',
      'X-Forwarded-For': '192.0.2.1',
    });
    const [received] = here.legacy.received;
    expect(received?.url).toBe('/old/api/profile/?a=b&c=%20');
    expect(received?.headers).toMatchObject({
      ...credentials(),
      host: new URL(here.legacy.url).host,
      'x-odd': 'caf\u00e9',
      'x-forwarded-for': '192.0.2.1, 127.0.0.1',
      via: '1.1 profile-bridge',
    });
    expect(received?.rawHeaders).toContain('X-Odd');
    expect(received?.headers['x-hop']).toBeUndefined();
    expect(received?.headers.te).toBeUndefined();
  });

  test('a request that names the whole URL, as to a proxy, reaches the same path', async () => {
    await rawRequest('GET', 'http://bridge.example.com/api/profile/?a=b', credentials());
    expect(here.legacy.received[0]?.url).toBe('/old/api/profile/?a=b');
  });

  test('a body in chunks arrives byte for byte, whatever it is', async () => {
    const body = randomBytes(3_000_000);
    await rawRequest(
      'PUT',
      '/api/profile/',
      { ...credentials(), 'content-type': 'multipart/form-data; boundary=x', 'transfer-encoding': 'chunked' },
      body,
    );
    const [received] = here.legacy.received;
    const digest = (bytes: Buffer | undefined) =>
      createHash('sha256')
        .update(bytes ?? '')
        .digest('hex');
    expect(digest(received?.body)).toBe(digest(body));
    expect(received?.headers['content-length']).toBe('3000000');
    expect(received?.headers['content-type']).toBe('multipart/form-data; boundary=x');
  });

  test('a picture in a multipart body is stored by the legacy service', async () => {
    const form = new FormData();
    form.set('profilePicture', new Blob([randomBytes(10_000)]), 'a.png');
    const put = await here.send(player, 'PUT', '/api/profile/', { body: form });
    expect(await put.json()).toMatchObject({ profilePictureUrl: expect.stringContaining('/pictures/') });
  });

  test('compressed responses are passed on compressed', async () => {
    here.legacy.organization(here.organization.id).save('u1', { username: 'Ada' });
    here.legacy.behaviour.gzip = true;
    const { headers, body } = await rawRequest('GET', '/api/profile/', credentials());
    expect(headers['content-encoding']).toBe('gzip');
    expect(JSON.parse(gunzipSync(body).toString())).toMatchObject({ username: 'Ada' });
  });

  test('the legacy service’s own errors are passed on', async () => {
    const response = await here.send('nobody', 'GET', '/api/profile/');
    expect(response.status).toBe(401);
    expect(await response.json()).toEqual({ error: { legacyCode: 'E_KEY', text: 'who are you?' } });
  });

  test('a long response arrives whole', async () => {
    const part = Buffer.alloc(64 * 1024, ' ');
    here.legacy.behaviour.override = { headers: {}, chunks: Array.from({ length: 512 }, () => part) };
    const { status, body } = await rawRequest('GET', '/api/profile/', credentials());
    expect({ status, bytes: body.length }).toEqual({ status: 200, bytes: 512 * part.length });
  });

  test.each([204, 304])(
    'a %i that announces a length, as of a body that it does not have, arrives',
    async (status) => {
      here.legacy.behaviour.override = {
        status,
        headers: { etag: '"1"', 'content-length': '18' },
        chunks: [],
      };
      const response = await rawRequest('GET', '/api/profile/', { ...credentials(), 'if-none-match': '"1"' });
      expect(response).toMatchObject({ status, headers: { etag: '"1"' } });
      expect(response.headers['content-length']).toBeUndefined();
    },
  );

  test('HEAD is forwarded, and a method that the path does not have is 405', async () => {
    here.legacy.organization(here.organization.id).save('u1', { username: 'Ada' });
    const head = await rawRequest('HEAD', '/api/profile/', credentials());
    expect(head.status).toBe(200);
    expect(head.body.length).toBe(0);
    const patch = await rawRequest('PATCH', '/api/profile/', credentials());
    expect(patch.status).toBe(405);
    expect(here.legacy.received.map(({ method }) => method)).toEqual(['HEAD']);
  });

  test('a body beyond the limit is refused with 413 and never forwarded', async () => {
    const tooLarge = await rawRequest('PUT', '/api/profile/', credentials(), Buffer.alloc(8 * 1024 * 1024));
    expect(tooLarge.status).toBe(413);
    expect(here.legacy.received).toEqual([]);
  });

  test('bodies that are refused as too slow leave no file open, whether they go on or their client leaves', async () => {
    const openFiles = (): number =>
      spawnSync('ls', ['-l', `/proc/${process.pid}/fd`])
        .stdout.toString()
        .split('/profile-bridge-').length - 1;
    const warnings: string[] = [];
    // The process that Jest shows to tests gets none.
    const outside = runInThisContext('process') as NodeJS.Process;
    const note = ({ message }: Error): unknown => warnings.push(message);
    outside.on('warning', note);
    const { hostname, port } = new URL(here.bridge.url);
    const headers = { ...credentials(), 'content-length': 1_500_000 };
    const put = (): ClientRequest => {
      const sent = httpRequest({ hostname, port, method: 'PUT', path: '/api/profile/', headers });
      sent.write(Buffer.alloc(1_200_000));
      return sent;
    };
    jest.useFakeTimers({
      doNotFake: ['setTimeout', 'setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'],
    });
    const [goingOn, leaving] = [put(), put()];
    let refused: IncomingMessage[][] | undefined;
    void Promise.all([once(goingOn, 'response'), once(leaving, 'response')]).then((all) => (refused = all));
    await until(() => openFiles() === 2);
    await until(() => {
      jest.advanceTimersByTime(10_000);
      return refused;
    });
    jest.useRealTimers();
    expect(refused?.map(([response]) => response?.resume().statusCode)).toEqual([408, 408]);
    goingOn.end(Buffer.alloc(300_000));
    leaving.destroy();
    await until(() => openFiles() === 0);
    // It was not the garbage collector that closed them.
    collectGarbage();
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    outside.off('warning', note);
    expect(warnings).toEqual([]);
  });

  test('invented keys do not use up the room for large bodies of known keys', async () => {
    const { port } = new URL(here.bridge.url);
    const head = (key: string, length: number): string =>
      `PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nX-Platform-Organization-Id: ${here.organization.id}\r\n` +
      `X-Api-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\nExpect: 100-continue\r\n\r\n`;
    const sockets = Array.from({ length: 64 }, () => connect(Number(port), '127.0.0.1'));
    try {
      const lines = await Promise.all(
        sockets.map(async (socket, n) => {
          socket.write(head(`made-up-${n}`, 1_000_000));
          const [line] = (await once(socket, 'data')) as [Buffer];
          return line.toString().slice(9, 12);
        }),
      );
      expect(lines.filter((status) => status === '100')).toHaveLength(16);
      expect(lines.filter((status) => status === '503')).toHaveLength(48);
      const body = JSON.stringify({ username: 'x' }).padEnd(100_000);
      expect((await here.send(player, 'PUT', '/api/profile/', { body })).status).toBe(200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  test.each(['GET', 'PUT'])(
    'a %s that a bridge has sent is refused: it would go around forever',
    async (method) => {
      const headers = { via: '1.1 profile-bridge, 1.1 proxy' };
      const body = method === 'PUT' ? { body: '{}' } : {};
      const response = await here.send(player, method, '/api/profile/', { headers, ...body });
      expect([response.status, await response.json()]).toMatchObject([502, { code: 'legacy-unavailable' }]);
      expect(here.legacy.received).toEqual([]);
    },
  );

  test('a connection that breaks before the response is a 502 without an address', async () => {
    here.legacy.behaviour.reset = 'before';
    const response = await here.send(player, 'PUT', '/api/profile/', { body: '{}' });
    expect(response.status).toBe(502);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ code: 'legacy-unavailable' });
    expect(text).toMatch(/unknown.*again is safe/);
    expect(text).not.toContain(new URL(here.legacy.url).port);
  });

  test('a response that breaks off is cut off for the client too', async () => {
    here.legacy.behaviour.cutOff = true;
    await expect(here.send(player, 'GET', '/api/profile/').then((it) => it.text())).rejects.toThrow();
  });

  test('a change is made even if its client leaves before the response', async () => {
    let open = (): void => {};
    here.legacy.behaviour.gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const socket = connect(Number(new URL(here.bridge.url).port), '127.0.0.1');
    const body = JSON.stringify({ username: 'Left' });
    const head = Object.entries(credentials()).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(
      `PUT /api/profile/ HTTP/1.1\r\nHost: x\r\n${head.join('')}Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    await until(() => here.legacy.received.length > 0);
    socket.resetAndDestroy();
    open();
    const profile = () => here.legacy.organization(here.organization.id).read('u1');
    await until(() => profile()?.username === 'Left');
  });
});

test.each([[[]], [['https://app.example']]])(
  'headers that both services send, or one of them twice, all arrive, with the CORS origins %j',
  async (corsOrigins) => {
    const pages = await startLegacyBridge({ corsOrigins });
    try {
      pages.legacy.behaviour.override = {
        headers: {
          'content-type': 'application/json',
          'set-cookie': ['a=1', 'b=2'],
          link: ['</next>; rel="next"', '</prev>; rel="prev"'],
          vary: ['Accept', 'Accept-Language'],
        },
        chunks: [Buffer.from('{}')],
      };
      const { headers } = await pages.send(await pages.player('u1'), 'GET', '/api/profile/');
      expect(headers.getSetCookie()).toEqual(['a=1', 'b=2']);
      expect(headers.get('link')).toMatch(/rel="deprecation".*rel="next", .*rel="prev"$/);
      const vary = [...corsOrigins.map(() => 'Origin'), 'Accept', 'Accept-Language'];
      expect(headers.get('vary')).toBe(vary.join(', '));
    } finally {
      await pages.close();
    }
  },
);

test('of the links of the legacy service, those of deprecation do not arrive, and others do', async () => {
  const other = await startLegacyBridge();
  const apiKey = await other.player('u1');
  const linksWith = async (link: string): Promise<string | null> => {
    other.legacy.behaviour.override = { headers: { link }, chunks: [Buffer.from('{}')] };
    return (await other.send(apiKey, 'GET', '/api/profile/')).headers.get('link');
  };
  try {
    const own = await linksWith('<https://old.example/v1>; rel="deprecation"');
    expect(own).toMatch(/^<[^<]*rel="deprecation"[^<]*<[^<]*rel="sunset"[^<]*<[^<]*rel="successor-version"$/);
    for (const [link, left] of [
      ['<https://old.example/v2>;REL=Successor-Version , </a,b>; rel="next"', '</a,b>; rel="next"'],
      ['</v1>; title="a, \\"b\\""; rel="sunset deprecation", </prev>; rel=prev', '</prev>; rel=prev'],
      ['</help>; title="x"; rel="help sunset"', '</help>; title="x"; rel="help"'],
    ] as const) {
      expect(await linksWith(link)).toBe(`${own}, ${left}`);
    }
  } finally {
    await other.close();
  }
});

test('a large body that is refused before it is read gets its response, when Redis is the authority', async () => {
  const native = await startLegacyBridge({}, {}, 'native');
  try {
    const { apiKey } = await native.organization.newKey({ role: 'player', userId: 'u1' });
    // Beyond what of a body is kept in memory.
    const body = 'x'.repeat(4_000_000);
    const put = async (key: string, type: string): Promise<number> =>
      (await native.send(key, 'PUT', '/api/profile/', { body, headers: { 'content-type': type } })).status;
    for (let n = 0; n < 5; n++) {
      expect(await put('wrong', 'multipart/form-data; boundary=x')).toBe(401);
      expect(await put(apiKey, 'text/plain')).toBe(415);
      expect(await put(apiKey, 'application/json')).toBe(413);
      expect(await put(apiKey, 'multipart/form-data; boundary=x')).toBe(400);
    }
  } finally {
    await native.close();
  }
});

test('a legacy service that is too slow is a 504', async () => {
  const hasty = await startLegacyBridge({ legacyTimeout: 100 });
  try {
    hasty.legacy.behaviour.gate = new Promise(() => {});
    const response = await hasty.send('any', 'GET', '/api/profile/');
    expect(response.status).toBe(504);
    expect(await response.json()).toMatchObject({ code: 'legacy-timeout' });
  } finally {
    await hasty.close();
  }
});

test('a response that comes without end, however steadily, is cut off', async () => {
  const hasty = await startLegacyBridge({ legacyTimeout: 200 });
  try {
    const chunks = setInterval(50, Buffer.from(' '));
    hasty.legacy.behaviour.override = { headers: {}, chunks };
    const response = await hasty.send('any', 'GET', '/api/profile/');
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  } finally {
    await hasty.close();
  }
});

test.each([
  ['is not there', async () => `http://127.0.0.1:${await unusedPort()}`, /^ECONNREFUSED: /],
  ['has no such name', () => 'http://legacy.invalid', /^(ENOTFOUND|EAI_AGAIN): .*legacy\.invalid/],
  ['is reached by the wrong scheme', () => here.legacy.url.replace('http', 'https'), /SSL/],
])('a legacy service that %s is a 502, and the log has the cause', async (_, urlOf, cause) => {
  const log = createLog('error');
  const warn = jest.spyOn(log, 'warn');
  const alone = await startBridge({ legacyBaseUrl: await urlOf() }, log);
  try {
    const response = await fetch(`${alone.url}/api/profile/`, { headers: credentials() });
    expect(response.status).toBe(502);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ code: 'legacy-unavailable' });
    expect(text).not.toMatch(cause);
    const calls = warn.mock.calls as unknown as [message: string, { failure: string }][];
    const [, { failure }] = await until(() => calls.find(([message]) => message === 'answered'));
    expect(failure).toMatch(cause);
    expect(failure.length).toBeLessThanOrEqual(300);
  } finally {
    await alone.close();
  }
});
