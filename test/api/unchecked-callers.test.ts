import { describe, expect, test } from '@jest/globals';
import { retireCheck } from '../../src/deprecation/reports/retire-check.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { startLegacyBridge, type LegacyBridge } from '../support/legacy/bridge.ts';
import { openTestStore, startBridge, type TestBridge } from '../support/bridge.ts';
import { startRedis } from '../support/redis.ts';

/** What the ledger says of the callers, once the bridge has written everything. */
async function callersOf({ config, close }: TestBridge) {
  await close();
  const store = await openTestStore(config.redisUrl);
  const check = await retireCheck(store, config.keyPrefix, { days: 1, now: Date.now() });
  await closeRedis(store);
  return {
    callers: check.callers.map(({ operation }) => operation),
    unchecked: check.unchecked.map(({ organization, calls }) => ({ organization, calls })),
    served: check.unattributed.map(({ served }) => served),
  };
}

test('a caller whose key cannot be looked up, since Redis is away, stands against a retirement', async () => {
  const redis = await startRedis();
  const bridge = await startBridge({ redisUrl: redis.url, redisTimeouts: {} });
  const organization = await bridge.newOrganization();
  const player = await organization.player('u1');
  process.kill(redis.pid, 'SIGSTOP');
  const statuses = await Promise.all([
    player.request('GET', '/api/profile/'),
    player.request('PUT', '/api/profile/', { json: {} }),
  ]);
  process.kill(redis.pid, 'SIGCONT');
  expect(statuses.map(({ status }) => status)).toEqual([503, 503]);
  expect(await callersOf(bridge)).toEqual({
    callers: [],
    unchecked: [{ organization: organization.id, calls: 2 }],
    served: [],
  });
  await redis.stop();
});

describe('behind a bridge in front of the legacy service', () => {
  const read = async (here: LegacyBridge, key: string) =>
    (await here.send(key, 'GET', '/api/profile/')).status;
  const change = async (here: LegacyBridge, key: string) => {
    const headers = { 'content-type': 'application/json' };
    return (await here.send(key, 'PUT', '/api/profile/', { body: '{"username":7}', headers })).status;
  };
  const keyOfLegacyOnly = ({ legacy, organization }: LegacyBridge): string => {
    const apiKey = `only-there-${Math.random()}`;
    legacy.addKey(apiKey, { organization: organization.id, role: 'player', user: 'eve' });
    return apiKey;
  };

  test('a caller is known although the legacy service does not answer', async () => {
    const here = await startLegacyBridge();
    const player = await here.player('ada');
    await here.legacy.close();
    expect([await read(here, player), await change(here, player)]).toEqual([502, 502]);
    const { callers, unchecked } = await callersOf(here.bridge);
    expect({ callers: callers.toSorted(), unchecked }).toEqual({
      callers: ['getProfile', 'putProfile'],
      unchecked: [],
    });
  });

  test('a caller whom the legacy service may have accepted, with a key that is unknown here, stands against a retirement', async () => {
    const here = await startLegacyBridge();
    const eve = keyOfLegacyOnly(here);
    expect([await read(here, eve), await change(here, eve)]).toEqual([404, 400]);
    expect(await callersOf(here.bridge)).toEqual({
      callers: [],
      unchecked: [{ organization: here.organization.id, calls: 2 }],
      served: [],
    });
    await here.legacy.close();
  });

  test('a caller whom the legacy service refuses does not', async () => {
    const here = await startLegacyBridge();
    expect([await read(here, 'a guess'), await change(here, 'a guess')]).toEqual([401, 401]);
    expect(await callersOf(here.bridge)).toEqual({ callers: [], unchecked: [], served: [0] });
    await here.legacy.close();
  });

  test('a caller with a key that is unknown here gets 410 like any other, and stands against a retirement', async () => {
    const until = Date.now() + 3_600_000;
    const here = await startLegacyBridge({
      deprecation: {
        deprecatedAt: 0,
        sunsetAt: 1,
        afterSunset: 'gone',
        exemptions: [{ keyId: 'k_any', until }],
      },
    });
    expect(await read(here, keyOfLegacyOnly(here))).toBe(410);
    expect((await callersOf(here.bridge)).unchecked).toEqual([
      { organization: here.organization.id, calls: 1 },
    ]);
    await here.legacy.close();
  });
});
