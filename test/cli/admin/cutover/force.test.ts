import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createReplayQueue } from '../../../../src/cutover/replay/queue/queue.ts';
import { replayAsideKey, replayKey } from '../../../../src/redis/keys.ts';
import { runTool } from '../../../support/tools/admin.ts';
import { startLegacyBridge, type LegacyBridge } from '../../../support/legacy/bridge.ts';
import { environmentFor } from '../../../support/redis.ts';

let here: LegacyBridge;
beforeAll(async () => {
  here = await startLegacyBridge({ replaySecret: 's'.repeat(32) }, {}, 'reverse');
});
afterAll(() => here.close());

test('cutover set native --force discards the changes that wait for their replay, and lists them', async () => {
  const { keyPrefix } = here.bridge.config;
  const { store } = here.bridge;
  const queue = createReplayQueue(store, keyPrefix);
  const send = async (apiKey: string, method: string, path: string, change: unknown): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    return (await here.send(apiKey, method, path, { body: JSON.stringify(change), headers })).status;
  };
  here.legacy.behaviour.failWith = 503;
  const ada = await here.player('ada');
  expect(await send(ada, 'PUT', '/api/profile/', { username: 'Ada' })).toBe(200);
  expect(await send(ada, 'PUT', '/api/profile/', { username: 'Ada 2' })).toBe(200);
  const admin = await here.admin();
  expect(await send(admin, 'POST', '/api/profile/username/deny/', { rude: 'x' })).toBe(204);
  expect(await send(admin, 'PUT', '/api/profile/username/denylist/', ['a', 'b'])).toBe(204);

  const env = { ...environmentFor(keyPrefix), LEGACY_BASE_URL: here.legacy.url };
  expect(await runTool(env, 'cutover set native')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/4 changes (could not|still wait to) be replayed to the legacy service/),
  });
  expect(await runTool(env, 'cutover set native --force --hold 60')).toMatchObject({
    code: 0,
    err: expect.stringContaining(
      'warning: changes that had not reached the legacy service were discarded: 2 put, 1 ban, 1 overwrite\n',
    ),
  });
  expect(await queue.state()).toMatchObject({ entries: 0, setAside: 0 });
  expect(await store.keys(`${here.organization.base}cutover:replay-list:*`)).toEqual([]);
  const name = await here.send(ada, 'GET', '/api/profile/');
  expect(await name.json()).toEqual({ username: 'Ada 2' });
  expect(here.legacy.organization(here.organization.id).profiles.size).toBe(0);
});

test('cutover set, run again after it was killed once the mode was switched, discards what that left', async () => {
  const { keyPrefix } = here.bridge.config;
  const { store } = here.bridge;
  const { base } = here.organization;
  await store.xadd(replayKey(base), '*', 'user', 'ada', 'sealed', 'key', 'kind', 'put', 'change', '{}');
  const setAside = {
    key: 'k',
    role: 'player',
    user: 'ada',
    sealed: 'key',
    kind: 'put',
    change: '{}',
    retry: '',
  };
  await store.hset(replayAsideKey(base), '1-0', JSON.stringify(setAside));
  const env = environmentFor(keyPrefix);
  expect(await runTool(env, 'cutover set native')).toEqual({
    code: 0,
    out: 'The mode is native already.\n',
    err: 'warning: changes that had not reached the legacy service were discarded: 1 put\n',
  });
  expect(await store.exists(replayKey(base))).toBe(0);
  expect(JSON.parse((await store.hget(replayAsideKey(base), '1-0')) ?? '')).toMatchObject({ sealed: '' });
});

test('cutover aside retry is refused in a mode in which nothing is replayed', async () => {
  const { keyPrefix } = here.bridge.config;
  const env = environmentFor(keyPrefix);
  expect(await runTool(env, 'cutover aside retry --all')).toEqual({
    code: 1,
    out: '',
    err: 'error: the mode is native, in which nothing is replayed to the legacy service: drop these changes (profile-bridge admin cutover aside drop)\n',
  });
  expect(await runTool(env, 'cutover aside drop --all')).toMatchObject({
    code: 0,
    out: '1 change dropped.\n',
  });
});
