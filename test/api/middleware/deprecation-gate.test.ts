import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { PolicyLayer } from '../../../src/deprecation/policy/policy.ts';
import { reportUsage } from '../../../src/deprecation/reports/report.ts';
import { retireCheck } from '../../../src/deprecation/reports/retire-check.ts';
import { readUsageQuery } from '../../../src/deprecation/reports/usage-query.ts';
import { startBridge, type TestBridge } from '../../support/bridge.ts';
import { createClient } from '../../support/requests/client.ts';

const hour = 3_600_000;
const running: TestBridge[] = [];
afterAll(async () => {
  await Promise.all(running.map((bridge) => bridge.close()));
});

async function start(deprecation: PolicyLayer): Promise<TestBridge> {
  const bridge = await startBridge({ deprecation });
  running.push(bridge);
  return bridge;
}

describe('a brownout', () => {
  let bridge: TestBridge;
  beforeAll(async () => {
    const now = Date.now();
    bridge = await start({ brownouts: [{ start: now - hour, end: now + hour }] });
  });

  test('answers 410 with Retry-After until its end, before authentication', async () => {
    const answer = await createClient(bridge.url).request('GET', '/api/profile/');
    expect([answer.status, answer.body]).toMatchObject([410, { code: 'brownout' }]);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(3500);
    expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(3600);
    expect(answer.headers['cache-control']).toContain('no-store');
    expect(answer.headers['link']).toContain('rel="successor-version"');
  });

  test('leaves OPTIONS available, without which no browser could read the 410', async () => {
    const answer = await createClient(bridge.url).request('OPTIONS', '/api/profile/');
    expect([answer.status, answer.headers['link']]).toEqual([
      204,
      expect.stringContaining('successor-version'),
    ]);
  });

  test('leaves the health checks and the documentation available', async () => {
    const client = createClient(bridge.url);
    for (const path of ['/livez', '/readyz', '/docs/', '/openapi.yaml']) {
      expect((await client.request('GET', path)).status).toBe(200);
    }
  });
});

describe('after the sunset', () => {
  const past = { deprecatedAt: Date.UTC(2025, 0, 1), sunsetAt: Date.UTC(2025, 5, 1) };

  test('the contract is still served by default', async () => {
    const player = await (await (await start(past)).newOrganization()).player('u1');
    expect((await player.request('GET', '/api/profile/')).status).toBe(404);
  });

  test('the contract is 410 if so configured, except for exempt callers', async () => {
    const until = Date.now() + hour;
    const bridge = await start({
      ...past,
      afterSunset: 'gone',
      exemptions: [{ organizationId: 'exempt', until }],
    });
    const [exempt, other] = [await bridge.newOrganization({}, 'exempt'), await bridge.newOrganization()];
    const [friend, stranger] = [await exempt.player('u1'), await other.player('u1')];
    expect((await friend.request('PUT', '/api/profile/', { json: {} })).status).toBe(200);
    const answer = await stranger.request('PUT', '/api/profile/', { json: {} });
    expect([answer.status, answer.body]).toMatchObject([410, { code: 'sunset' }]);
    const impostor = createClient(bridge.url, { organization: 'exempt', apiKey: 'guess' });
    expect((await impostor.request('GET', '/api/profile/')).status).toBe(410);
  });

  test('the exemption of a key lets calls with that key through, and no others', async () => {
    const exempt = { keyId: '', until: Date.now() + hour };
    const bridge = await start({ ...past, afterSunset: 'gone', exemptions: [exempt] });
    const organization = await bridge.newOrganization();
    const { apiKey, keyId } = await organization.newKey({ role: 'player', userId: 'u1' });
    exempt.keyId = keyId;
    const client = createClient(bridge.url, { organization: organization.id, apiKey });
    expect((await client.request('GET', '/api/profile/')).status).toBe(404);
    expect((await (await organization.player('u1')).request('GET', '/api/profile/')).status).toBe(410);
  });
});

describe('a caller who gets 410', () => {
  const gone: PolicyLayer = { deprecatedAt: 0, sunsetAt: 1, afterSunset: 'gone' };

  /** Calls with a valid key, a wrong one, an empty one and none; returns the reports on it. */
  const callWith = async (policy: PolicyLayer) => {
    const bridge = await startBridge({ deprecation: policy });
    const acme = await bridge.newOrganization({}, 'acme');
    const clients = [
      await acme.player('u1'),
      createClient(bridge.url, { organization: 'acme', apiKey: 'a guess' }),
      createClient(bridge.url, { organization: 'acme', apiKey: '' }),
      createClient(bridge.url, { organization: 'acme' }),
    ];
    for (const client of clients) {
      expect((await client.request('GET', '/api/profile/')).status).toBe(410);
    }
    await bridge.close();
    const reader = await start({});
    const now = Date.now();
    const { keyPrefix } = bridge.config;
    const query = readUsageQuery({ group: 'client' }, now);
    if (query.kind !== 'ok') throw new Error(query.kind);
    const { rows } = await reportUsage(reader.store, keyPrefix, query.query, now);
    const calls = Object.fromEntries(rows.map((row) => [row.client?.replace(/^k_.*/, 'the key'), row.calls]));
    return { calls, check: await retireCheck(reader.store, keyPrefix, { days: 1, now }) };
  };

  test('before the key is checked still counts as calling, unless there is no key', async () => {
    const { calls, check } = await callWith(gone);
    expect(calls).toEqual({ '(key not checked)': 2, '(unattributed)': 2 });
    expect(check.retirable).toBe(false);
    expect(check.reasons[0]).toContain('2 calls in the last day came with a key that was not checked');
    expect(check.unchecked).toMatchObject([{ organization: 'acme', calls: 2 }]);
    expect(check.unattributed).toMatchObject([{ organization: 'acme', calls: 2 }]);
  });

  test('counts as calling only with a valid key while some key is exempt', async () => {
    const until = Date.now() + hour;
    const { calls, check } = await callWith({ ...gone, exemptions: [{ keyId: 'k_other', until }] });
    expect(calls).toEqual({ 'the key': 1, '(unattributed)': 3 });
    expect(check.unchecked).toEqual([]);
    expect(check.unattributed).toMatchObject([{ organization: 'acme', calls: 3 }]);
    expect(check.callers).toMatchObject([{ organization: 'acme', operation: 'getProfile' }]);
  });
});

test('a request that is looked up for its exemption counts once against the rate limit', async () => {
  const until = Date.now() + hour;
  const bridge = await startBridge({
    deprecation: {
      brownouts: [{ start: 0, end: until }],
      exemptions: [{ organizationId: 'exempt', until }],
    },
    rateLimit: { requests: 2, seconds: 60 },
  });
  running.push(bridge);
  const player = await (await bridge.newOrganization({}, 'exempt')).player('u1');
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await player.request('GET', '/api/profile/')).status);
  expect(statuses).toEqual([404, 404, 429]);
});
