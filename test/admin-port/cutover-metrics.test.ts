import { expect, test } from '@jest/globals';
import type { RedisClient } from '../../src/redis/connection/client.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { legacyPicturesKey } from '../../src/redis/keys.ts';
import { startLegacyBridge, type LegacyBridge } from '../support/legacy/bridge.ts';
import { until } from '../support/until.ts';
import { startAdminPort, type TestAdminPort } from '../support/admin-port.ts';
import { freshPrefix, startRedis } from '../support/redis.ts';
import { openTestStore } from '../support/store.ts';
import { useCleanup, useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
const toClose = useCleanup();

async function open(client: RedisClient, keyPrefix: string): Promise<TestAdminPort> {
  let clock = 0;
  // A minute passes between two scrapes, so that each of them reads Redis.
  const port = await startAdminPort({ store: client, keyPrefix, now: () => (clock += 60_000) });
  toClose.push(port.close);
  return port;
}

/** The series of the cut-over with their values. */
async function scrape(port: TestAdminPort): Promise<Map<string, number>> {
  const { text } = await port.ask('/metrics');
  const lines = [...text.matchAll(/^profile_bridge_cutover_(\S+) (\S+)$/gm)];
  return new Map(lines.map(([, name = '', value]) => [name, Number(value)]));
}

async function inFrontOfLegacy(mode: 'shadow' | 'mirror'): Promise<LegacyBridge & { port: TestAdminPort }> {
  const opened = await startLegacyBridge({}, {}, mode);
  toClose.push(opened.close);
  return { ...opened, port: await open(store, opened.bridge.config.keyPrefix) };
}

test('the cut-over metrics show the mode, the instances and whether the next step is safe', async () => {
  const { port } = await inFrontOfLegacy('shadow');
  const series = await scrape(port);
  expect(series.get('mode{mode="shadow"}')).toBe(1);
  expect(series.get('mode{mode="native"}')).toBe(0);
  expect(series.get('instances{state="responding"}')).toBe(1);
  expect(series.get('instances{state="silent"}')).toBe(0);
  expect(series.get('ready{to="mirror"}')).toBe(1);
  expect(series.get('unsettled')).toBe(0);
  expect(series.get('differing_users')).toBe(0);
  for (const name of ['backlog_entries', 'backlog_age_seconds', 'set_aside_entries', 'replay_paused'])
    expect([name, series.get(name)]).toEqual([name, 0]);
});

test('the cut-over metrics show what comparisons have found', async () => {
  const { port, legacy, organization, player, send } = await inFrontOfLegacy('shadow');
  legacy.organization(organization.id).save('ada', { username: 'ada' });
  legacy.addKey('unmapped', { organization: organization.id, role: 'player', user: 'ada' });
  await (await send(await player('ada'), 'GET', '/api/profile/')).text();
  await (await send('unmapped', 'GET', '/api/profile/')).text();
  await until(async () => (await scrape(port)).get('disputed_keys{kind="unmapped"}') === 1);
  await until(async () => (await scrape(port)).get('differing_users') === 1);
  const series = await scrape(port);
  expect(series.get('comparisons{result="different"}')).toBe(1);
  expect(series.get('differences{field="profile"}')).toBe(1);
  expect(series.get('ready{to="mirror"}')).toBe(0);
});

test('the cut-over metrics count responses of the legacy service that could not be read', async () => {
  const { port, legacy, player, send } = await inFrontOfLegacy('shadow');
  legacy.behaviour.override = {
    headers: { 'content-type': 'text/html' },
    chunks: [Buffer.from('<p>maintenance</p>')],
  };
  await (await send(await player('ada'), 'GET', '/api/profile/')).text();
  await until(async () => (await scrape(port)).get('comparisons{result="unreadable"}') === 1);
});

test('the number of pictures at legacy URLs is absent until they have been counted', async () => {
  const { port, bridge } = await inFrontOfLegacy('mirror');
  expect((await scrape(port)).has('legacy_pictures')).toBe(false);
  await store.set(legacyPicturesKey(bridge.config.keyPrefix), `0 ${Date.now()}`);
  expect((await scrape(port)).get('legacy_pictures')).toBe(0);
});

test('the cut-over metrics count gaps by reason', async () => {
  const { port, legacy, organization, send } = await inFrontOfLegacy('mirror');
  legacy.addKey('unmapped', { organization: organization.id, role: 'player', user: 'ada' });
  const body = JSON.stringify({ username: 'ada' });
  const headers = { 'content-type': 'application/json' };
  expect((await send('unmapped', 'PUT', '/api/profile/', { body, headers })).status).toBe(200);
  await until(async () => (await scrape(port)).get('gaps{reason="unknown-key"}') === 1);
});

test('there are no cut-over metrics if there was no cut-over', async () => {
  expect([...(await scrape(await open(store, freshPrefix()))).keys()]).toEqual([]);
});

test('there are no cut-over metrics while Redis is unavailable', async () => {
  const redis = await startRedis();
  toClose.push(redis.stop);
  const client = await openTestStore(redis.url);
  toClose.push(() => closeRedis(client));
  await client.hset('pb:cutover', { mode: 'shadow', epoch: 1, since: 1, by: 'test' });
  const port = await open(client, 'pb:');
  expect((await scrape(port)).get('mode{mode="shadow"}')).toBe(1);
  await redis.stop();
  expect([...(await scrape(port)).keys()]).toEqual([]);
});
