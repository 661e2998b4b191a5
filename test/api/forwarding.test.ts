import { once } from 'node:events';
import type { ClientRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startLegacyBridge, type LegacyBridge } from '../support/legacy/bridge.ts';
import { createTool } from '../support/tools/migrate.ts';
import { runTool } from '../support/tools/admin.ts';
import { until } from '../support/until.ts';
import { beginPut, finishPut } from '../support/requests/late-put.ts';

const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

/** Sends a request as far as it is given, and resolves to the first bytes of what comes back. */
async function firstAnswer(
  { bridge, organization }: LegacyBridge,
  line: string,
  headers: Record<string, string | number>,
  body = '',
): Promise<string> {
  const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1');
  open.push(socket);
  const all = { Host: 'x', 'X-Platform-Organization-Id': organization.id, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${line} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  return String(bytes);
}

const expecting = { Expect: '100-continue' };

describe('where Redis is the authority, credentials are checked before the body', () => {
  let here: LegacyBridge;
  let player: string;
  beforeAll(async () => {
    here = await startLegacyBridge({ rateLimit: { requests: 1000, seconds: 3600 } }, {}, 'native');
    player = await here.player('u1');
  });
  afterAll(() => here.close());

  test.each([
    ['a body that is too large', { 'Content-Length': 8_000_000 }, ''],
    ['half a body', { 'Content-Length': 1_000_000 }, 'x'.repeat(500_000)],
    ['a body that waits for 100 Continue', { 'Content-Length': 2, ...expecting }, ''],
  ])('an unknown key with %s is 401', async (_body, headers, body) => {
    const answer = await firstAnswer(here, 'PUT /api/profile/', { 'X-Api-Key': 'wrong', ...headers }, body);
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).toContain('"code":"invalid-api-key"');
  });

  test('no key is 401, however large the body', async () => {
    const answer = await firstAnswer(here, 'PUT /api/profile/', { 'Content-Length': 8_000_000 });
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  });

  test.each([
    ['a body that is too large', { 'Content-Length': 9_000_000_000 }],
    ['a body that waits for 100 Continue', { 'Content-Length': 2, ...expecting }],
  ])('a player who sends the denylist %s is 403', async (_body, headers) => {
    const line = 'PUT /api/profile/username/denylist/';
    const answer = await firstAnswer(here, line, { 'X-Api-Key': player, ...headers });
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(answer).toContain('"code":"admin-required"');
  });

  test('a client that waits for 100 Continue gets it once its caller is known', async () => {
    const headers = { 'X-Api-Key': player, 'Content-Length': 2, ...expecting };
    expect(await firstAnswer(here, 'PUT /api/profile/', headers)).toMatch(/^HTTP\/1\.1 100 /);
  });

  test('a request whose body arrives late counts once towards the rate limit', async () => {
    const put = await beginPut(here, await here.player('limited'));
    const { status, headers } = await finish(put, 'Limited');
    expect({ status, limit: headers['ratelimit'] }).toEqual({
      status: 200,
      limit: expect.stringContaining('r=999;'),
    });
  });
});

const finish = async (put: ClientRequest, username: string) =>
  await finishPut(put, JSON.stringify({ username }));

describe('a request whose body arrives while the mode is switched', () => {
  let here: LegacyBridge;
  beforeEach(async () => {
    here = await startLegacyBridge({ replaySecret: 's'.repeat(32) }, {}, 'mirror');
  });
  afterEach(() => here.close());

  const switchTo = async (mode: string): Promise<void> => {
    const { redisUrl, keyPrefix } = here.bridge.config;
    const env = { ...createTool(redisUrl, keyPrefix).env, LEGACY_BASE_URL: here.legacy.url };
    const command = `cutover set ${mode} --force --wait 120 --hold 60`;
    const { code, err } = await runTool(env, command);
    expect({ command, code, err }).toMatchObject({ code: 0 });
  };
  const nameThere = (userId: string) => here.legacy.organization(here.organization.id).read(userId)?.username;
  const nameHere = async (userId: string) =>
    await here.bridge.store.hget(`${here.organization.base}p:${userId}`, 'u');
  const changesThere = () => here.legacy.received.filter(({ method }) => method === 'PUT').length;

  test('from the legacy service to Redis is served here, and its caller authenticated here', async () => {
    const ada = await beginPut(here, await here.player('ada'));
    const unknown = 'known to the legacy service only';
    here.legacy.addKey(unknown, { organization: here.organization.id, role: 'player', user: 'eve' });
    const eve = await beginPut(here, unknown);
    await switchTo('reverse');
    expect(await finish(ada, 'Ada')).toMatchObject({ status: 200, text: '{"username":"Ada"}' });
    expect(await finish(eve, 'Eve')).toMatchObject({ status: 401 });
    expect(await nameHere('ada')).toBe('Ada');
    await until(() => nameThere('ada') === 'Ada');
    expect(nameThere('eve')).toBeUndefined();
  });

  test('from Redis to the legacy service is forwarded and adopted', async () => {
    await switchTo('reverse');
    const put = await beginPut(here, await here.player('ada'));
    await switchTo('mirror');
    expect(await finish(put, 'Ada')).toMatchObject({ status: 200, text: '{\n   "username": "Ada"\n}' });
    expect(nameThere('ada')).toBe('Ada');
    await until(async () => (await nameHere('ada')) === 'Ada');
  });

  test('from Redis to the legacy service and back is made once', async () => {
    await switchTo('reverse');
    const put = await beginPut(here, await here.player('ada'));
    await switchTo('mirror');
    await switchTo('reverse');
    expect(await finish(put, 'Ada')).toMatchObject({ status: 200, text: '{"username":"Ada"}' });
    await until(() => nameThere('ada') === 'Ada');
    expect(changesThere()).toBe(1);
  });
});

test('the addresses of one IPv6 network count as one sender of bodies', async () => {
  const here = await startLegacyBridge({ trustProxy: 1 });
  try {
    const statusFor = async (address: string): Promise<string> => {
      const headers = { 'X-Forwarded-For': address, 'X-Api-Key': 'wrong', 'Content-Length': 1_000_000 };
      return (await firstAnswer(here, 'PUT /api/profile/', { ...headers, ...expecting })).slice(9, 12);
    };
    const sending = Array.from({ length: 20 }, (_, n) => statusFor(`2001:db8:0:1::${n + 1}`));
    const statuses = await Promise.all(sending);
    expect(statuses.filter((status) => status === '100')).toHaveLength(16);
    expect(statuses.filter((status) => status === '503')).toHaveLength(4);
    expect(await statusFor('2001:db8:0:2::1')).toBe('100');
  } finally {
    await here.close();
  }
});
