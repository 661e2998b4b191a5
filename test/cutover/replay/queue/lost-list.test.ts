import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { replayRestoreDueKey, replayOrganizationsKey } from '../../../../src/redis/keys.ts';
import { createReplayQueue } from '../../../../src/cutover/replay/queue/queue.ts';
import { runTool } from '../../../support/tools/admin.ts';
import { startRedis } from '../../../support/redis.ts';
import { undisturbed } from '../../../support/run/undisturbed.ts';
import { openTestStore } from '../../../support/store.ts';
import { until } from '../../../support/until.ts';
import { useTestStore } from '../../../support/use-store.ts';
import { closeRedis } from '../../../../src/redis/connection/connect.ts';
import { startLegacyBridge } from '../../../support/legacy/bridge.ts';
import { openReplaying, type Replaying } from '../replaying.ts';

/* What becomes of the list of organizations with waiting changes, and of the replay that goes by it, if all is not well. */

const store = await useTestStore();
let here: Replaying;
beforeEach(async () => {
  here = await openReplaying(store);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await here.close();
});

const untilReplayed = () => until(async () => (await here.waiting()) === 0);

test('a replayer that has sent everything goes on with a change that comes a moment later', async () => {
  const mark = jest.spyOn(here.queue, 'mark');
  const sendersOf20 = async (): Promise<number> => {
    mark.mockClear();
    const replayer = here.start('one');
    for (let at = 0; at < 20; at++) {
      await here.put('ada', `Ada ${at}`);
      await untilReplayed();
    }
    await replayer.close();
    // Each lease has a sender of its own.
    return new Set(mark.mock.calls.map(([, , sender]) => sender)).size;
  };
  expect(await undisturbed(sendersOf20, (senders) => senders >= 10)).toBeLessThan(10);
});

test('what is on the list is replayed although the list cannot be restored', async () => {
  const restore = jest.spyOn(here.queue, 'restoreList');
  restore.mockRejectedValue(new Error('CLUSTERDOWN a master is away'));
  const warn = jest.spyOn(here.log, 'warn');
  const replayer = here.start('one');
  await until(() => restore.mock.calls.length > 0);
  await here.put('ada', 'Ada');
  await untilReplayed();
  await replayer.close();
  expect(warn).not.toHaveBeenCalled();
});

test('while changes wait, an organization is read again only once another one was queued', async () => {
  const read = jest.spyOn(here.queue, 'read');
  const listed = jest.spyOn(here.queue, 'listed');
  here.legacy.behaviour.failWith = 503;
  await here.put('ada', 'Ada');
  // Its clock stands still, so that what failed is not sent again meanwhile.
  const replayer = here.start('one', () => 0);
  await until(() => here.legacy.received.length > 0);
  const [reads, looks] = [read.mock.calls.length, listed.mock.calls.length];
  await until(() => listed.mock.calls.length > looks + 10);
  expect(read.mock.calls.length).toBe(reads);
  await here.put('bob', 'Bob');
  await until(() => here.legacy.received.some(({ body }) => body.includes('Bob')));
  expect(read.mock.calls.length).toBe(reads + 1);
  await replayer.close();
});

test('an organization gets on the list although Redis is full', async () => {
  const redis = await startRedis();
  const full = await openTestStore(redis.url);
  await full.config('SET', 'maxmemory', '1');
  await expect(full.set('key', 'value')).rejects.toThrow('OOM');
  const queue = createReplayQueue(full, 'pb:');
  await queue.announce('acme');
  expect(await queue.listed()).toEqual([['acme', expect.any(String)]]);
  await closeRedis(full);
  await redis.stop();
});

test('a switch back does not wait for the look at all organizations if an instance could not list one', async () => {
  const bridge = await startLegacyBridge({ replaySecret: 's'.repeat(32) }, {}, 'reverse');
  const { keyPrefix, redisUrl } = bridge.bridge.config;
  const list = replayOrganizationsKey(keyPrefix);
  await store.set(replayRestoreDueKey(keyPrefix), 'another', 'PX', 60_000);
  // As if the instance were killed before it lists the organization.
  await store.set(list, 'no set');
  const player = await bridge.player('ada');
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ username: 'Ada' });
  expect((await bridge.send(player, 'PUT', '/api/profile/', { body, headers })).status).toBe(200);
  await store.del(list);

  const env = { REDIS_URL: redisUrl, KEY_PREFIX: keyPrefix, LEGACY_BASE_URL: bridge.legacy.url };
  expect(await runTool(env, 'cutover set mirror --hold 60')).toMatchObject({ code: 0 });
  const { profiles } = bridge.legacy.organization(bridge.organization.id);
  expect(profiles.get('ada')).toEqual({ username: 'Ada' });
  await bridge.close();
});
