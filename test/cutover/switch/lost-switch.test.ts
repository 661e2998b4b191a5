import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { replayerKey, replayKey } from '../../../src/redis/keys.ts';
import { startBridge } from '../../support/bridge.ts';
import { startLegacyBridge } from '../../support/legacy/bridge.ts';
import { environmentFor, startRedis } from '../../support/redis.ts';
import { runTool } from '../../support/tools/admin.ts';
import { until } from '../../support/until.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

test('a bridge that starts once Redis has lost the switch from reverse replays no old value, and refuses changes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'lost-switch-'));
  ends.push(() => rm(folder, { recursive: true, force: true }));
  let redis = await startRedis([], folder);
  ends.push(() => redis.stop());
  const options = { redisUrl: redis.url, replaySecret: 's'.repeat(32) };
  const here = await startLegacyBridge(options, {}, 'reverse');
  ends.push(here.close);
  const { bridge, legacy, organization } = here;
  const { keyPrefix } = bridge.config;
  const ada = await here.player('ada');
  const nameThere = () => legacy.organization(organization.id).profiles.get('ada')?.username;
  const put = async ({ url }: { url: string }, username: string): Promise<number> => {
    const headers = {
      'content-type': 'application/json',
      'x-api-key': ada,
      'x-platform-organization-id': organization.id,
    };
    const body = JSON.stringify({ username });
    return (await fetch(`${url}/api/profile/`, { method: 'PUT', body, headers })).status;
  };
  const knowsAuthority = async ({ url }: { url: string }) =>
    !(await (await fetch(`${url}/readyz`)).text()).includes('authority-unknown');
  const set = (mode: string) =>
    runTool(
      { ...environmentFor(keyPrefix, redis.url), LEGACY_BASE_URL: legacy.url },
      `cutover set ${mode} --hold 60`,
    );

  // Nobody replays until the change is in a dump.
  await bridge.store.set(replayerKey(keyPrefix), 'nobody', 'PX', 600_000);
  expect(await put(bridge, 'Old')).toBe(200);
  await bridge.store.save();
  await bridge.store.del(replayerKey(keyPrefix));
  await until(() => nameThere() === 'Old');
  expect(await set('mirror')).toMatchObject({ code: 0 });
  expect(await put(bridge, 'New')).toBe(200);

  await redis.stop();
  redis = await startRedis(['--port', String(redis.port)], folder);
  await until(async () => !(await knowsAuthority(bridge)));
  const later = await startBridge({ ...options, keyPrefix, legacyBaseUrl: legacy.url });
  ends.push(later.close);
  await later.store.del(replayerKey(keyPrefix));
  expect(await knowsAuthority(later)).toBe(false);
  expect(await put(later, 'Newer')).toBe(503);
  expect([nameThere(), await later.store.xlen(replayKey(organization.base))]).toEqual(['New', 1]);

  expect(await set('mirror')).toMatchObject({
    code: 1,
    err: expect.stringContaining('1 change still waits to be replayed to the legacy service'),
  });
  expect(await later.store.xlen(replayKey(organization.base))).toBe(1);
  expect(await set('mirror --force')).toMatchObject({ code: 0 });
  await until(() => knowsAuthority(later));
  expect(await put(later, 'Newer')).toBe(200);
  expect(nameThere()).toBe('Newer');
});
