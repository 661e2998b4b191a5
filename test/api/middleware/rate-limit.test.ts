import { afterEach, describe, expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { createFailureLimiter } from '../../../src/api/middleware/rate-limit.ts';
import type { Config } from '../../../src/config.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { openTestStore, startBridge, type TestBridge } from '../../support/bridge.ts';
import { freshPrefix } from '../../support/redis.ts';
import { interceptCalls } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';
import { createClient, type Answer, type Client } from '../../support/requests/client.ts';

const store = await useTestStore();
const running: TestBridge[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((bridge) => bridge.close()));
});

async function start(overrides: Partial<Config> = {}): Promise<TestBridge> {
  const bridge = await startBridge({ authFailureLimit: { requests: 3, seconds: 60 }, ...overrides });
  running.push(bridge);
  return bridge;
}

const path = '/api/profile/';

async function fail(bridge: TestBridge, times: number, headers: Record<string, string> = {}) {
  const stranger = createClient(bridge.url, { organization: 'x', apiKey: 'wrong' });
  const statuses: number[] = [];
  for (let i = 0; i < times; i++) statuses.push((await stranger.request('GET', path, { headers })).status);
  return statuses;
}

async function request(client: Client, headers: Record<string, string> = {}): Promise<Answer> {
  return await client.request('GET', path, { headers });
}

describe('failed authentications of an address', () => {
  test('are answered 429 above the limit, with Retry-After and the RateLimit fields', async () => {
    const bridge = await start();
    expect(await fail(bridge, 5)).toEqual([401, 401, 401, 429, 429]);
    const answer = await request(createClient(bridge.url, { organization: 'x', apiKey: 'other' }));
    expect(answer.body).toMatchObject({ code: 'rate-limited' });
    expect(answer.headers).toMatchObject({ 'ratelimit-policy': '"address";q=3;w=60' });
    expect(answer.headers['ratelimit']).toMatch(/^"address";r=0;t=\d+$/);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  });

  test('do not lock out valid keys', async () => {
    const bridge = await start();
    const organization = await bridge.newOrganization();
    expect(await fail(bridge, 4)).toEqual([401, 401, 401, 429]);
    expect((await request(await organization.player('u1'))).status).toBe(404);
  });

  test('count on every instance', async () => {
    const bridge = await start();
    const other = await start({ keyPrefix: bridge.config.keyPrefix });
    await fail(bridge, 3);
    expect(await fail(other, 1)).toEqual([429]);
  });

  test('are still refused with 410 while the API is switched off', async () => {
    const until = Date.now() + 3_600_000;
    const bridge = await start({
      deprecation: { brownouts: [{ start: 0, end: until }], exemptions: [{ keyId: 'k', until }] },
    });
    expect(await fail(bridge, 5)).toEqual([410, 410, 410, 410, 410]);
  });

  test('are not limited where the limit is switched off', async () => {
    const bridge = await start({ authFailureLimit: 'none' });
    expect(await fail(bridge, 5)).toEqual([401, 401, 401, 401, 401]);
  });
});

describe('the address of a client', () => {
  const from = (address: string) => ({ 'x-forwarded-for': address });

  test('cannot be forged by a header', async () => {
    const bridge = await start();
    await fail(bridge, 3, from('192.0.2.1'));
    expect(await fail(bridge, 1, from('192.0.2.2'))).toEqual([429]);
  });

  test('is what a trusted proxy says', async () => {
    const bridge = await start({ trustProxy: ['loopback'] });
    // What the client itself has put there comes first.
    expect(await fail(bridge, 4, from('198.51.100.7, 192.0.2.1'))).toEqual([401, 401, 401, 429]);
    expect(await fail(bridge, 1, from('192.0.2.2'))).toEqual([401]);
    expect(await fail(bridge, 1, from('203.0.113.9, 192.0.2.1'))).toEqual([429]);
  });

  test.each([
    ['192.0.2.1', ['192.0.2.1:50001', '192.0.2.1:50002', '"192.0.2.1:50003"']],
    ['2001:db8::1', ['[2001:db8::1]:50001', '"[2001:db8::1]:50002"', '[2001:db8::1]']],
    ['unknown', ['_hidden', '192.0.2.1.5:80', '[192.0.2.1']],
  ])('is the same however a proxy writes it: %s', async (address, forms) => {
    const bridge = await start({ trustProxy: 1 });
    for (const form of forms) expect(await fail(bridge, 1, from(form))).toEqual([401]);
    expect(await fail(bridge, 1, from(address))).toEqual([429]);
    expect(await fail(bridge, 1, from('192.0.2.2:50001'))).toEqual([401]);
  });

  test('is looked for behind trusted proxies that are written with a port', async () => {
    const bridge = await start({ trustProxy: ['loopback', '10.0.0.0/8'] });
    await fail(bridge, 3, from('192.0.2.1:50001, 10.0.0.1:443'));
    expect(await fail(bridge, 1, from('192.0.2.2:50001, 10.0.0.1:443'))).toEqual([401]);
    expect(await fail(bridge, 1, from('192.0.2.1:50002, 10.0.0.2:443'))).toEqual([429]);
  });

  test('is the whole /64 network for IPv6', async () => {
    const bridge = await start({ trustProxy: 1 });
    await fail(bridge, 4, from('2001:db8::1'));
    expect(await fail(bridge, 1, from('2001:db8:0:0:ffff::2'))).toEqual([429]);
    expect(await fail(bridge, 1, from('2001:db8:0:1::1'))).toEqual([401]);
  });
});

/** Counts failures of an address, of which two are allowed. */
function counting(client: RedisClient): (ip: string) => Promise<void> {
  const countFailure = createFailureLimiter(client, freshPrefix(), { requests: 2, seconds: 60 });
  const response = { setHeader: () => {} } as unknown as Response;
  return async (ip) => await countFailure({ ip } as Request, response);
}

test('failures above the limit are refused without asking Redis', async () => {
  let calls = 0;
  const count = counting(interceptCalls(store, (make) => (++calls, make())));
  for (let i = 0; i < 2; i++) await count('192.0.2.1');
  await expect(count('192.0.2.1')).rejects.toThrow('rate-limited');
  const before = calls;
  expect(before).toBeGreaterThan(2);
  for (let i = 0; i < 10; i++) await expect(count('192.0.2.1')).rejects.toThrow('rate-limited');
  expect(calls).toBe(before);
});

test('without Redis failures are limited in memory', async () => {
  const closed = await openTestStore();
  await closeRedis(closed);
  const count = counting(closed);
  await count('192.0.2.1');
  await count('192.0.2.1');
  await expect(count('192.0.2.1')).rejects.toThrow('rate-limited');
  await expect(count('192.0.2.2')).resolves.toBeUndefined();
});
