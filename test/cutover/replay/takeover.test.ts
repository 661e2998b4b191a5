import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startBridgeProcess, type Server } from '../../../scripts/drills/processes.ts';
import { createReplayQueue, type ReplayQueue } from '../../../src/cutover/replay/queue.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { cutoverKey, organizationBase, profileKey, replayerKey } from '../../../src/redis/keys.ts';
import { startLegacy, type Legacy } from '../../legacy/legacy.ts';
import { createTestOrganization } from '../../support/bridge.ts';
import { freshPrefix, testRedisUrl } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';

/*
 * Two real bridges in mode reverse. The one that replays is killed: while the legacy service has a change that has not
 * taken effect, while its response is on its way, and at moments that nobody chose.
 */

const organizationId = 'acme';
const prefix = freshPrefix();
const users = Array.from({ length: 8 }, (_, n) => `user-${n}`);
let legacy: Legacy;
let store: RedisClient;
let queue: ReplayQueue;
let keys: string[];
let bridges: Server[];

beforeAll(async () => {
  legacy = await startLegacy();
  store = await openTestStore();
  queue = createReplayQueue(store, prefix);
  await store.hset(cutoverKey(prefix), { mode: 'reverse', epoch: 1, since: Date.now(), by: 'test' });
  const config = { keyPrefix: prefix, organizationHeader: 'x-platform-organization-id' };
  const { newKey } = await createTestOrganization('', config, store, organizationId);
  keys = await Promise.all(
    users.map(async (user) => {
      const { apiKey } = await newKey({ role: 'player', userId: user });
      legacy.addKey(apiKey, { organization: organizationId, role: 'player', user });
      return apiKey;
    }),
  );
  const environment = {
    REDIS_URL: testRedisUrl(),
    KEY_PREFIX: prefix,
    ALLOW_EVICTION: '1',
    LEGACY_BASE_URL: legacy.url,
    LEGACY_TIMEOUT: '1',
    REPLAY_SECRET: 's'.repeat(40),
  };
  bridges = await Promise.all([startBridgeProcess(environment), startBridgeProcess(environment)]);
});
afterAll(async () => {
  for (const bridge of bridges) await bridge.stop();
  await closeRedis(store);
  await legacy.close();
});

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(10);
}

const put = async (bridge: Server, user: number, username: string): Promise<number> => {
  const response = await fetch(`${bridge.url}/api/profile/`, {
    method: 'PUT',
    body: JSON.stringify({ username }),
    headers: {
      'content-type': 'application/json',
      'x-api-key': keys[user] ?? '',
      'x-platform-organization-id': organizationId,
    },
  });
  await response.arrayBuffer();
  return response.status;
};

/** The bridge that replays now, and the other one. */
async function roles(): Promise<[replaying: Server, other: Server]> {
  let holder: string | null = null;
  await until(async () => (holder = await store.get(replayerKey(prefix))) !== null);
  const isFirst = String(holder).includes(`-${bridges[0]?.pid()}-`);
  const [first, second] = bridges as [Server, Server];
  return isFirst ? [first, second] : [second, first];
}

const areEqual = async (): Promise<boolean> => {
  const there = legacy.organization(organizationId);
  const base = organizationBase(prefix, organizationId);
  const here = await Promise.all(users.map((user) => store.hget(profileKey(base, user), 'u')));
  return here.every((name, n) => (there.profiles.get(users[n] ?? '')?.username ?? null) === name);
};

const untilReplayed = async (): Promise<void> =>
  await until(async () => {
    for await (const { entries } of queue.backlog()) if (entries > 0) return false;
    return true;
  });

test.each(['gate', 'answerGate'] as const)(
  'a replayer that is killed while the legacy service has a change (%s): another one sends it again, and goes on',
  async (gate) => {
    let open = (): void => {};
    legacy.behaviour[gate] = new Promise<void>((resolve) => (open = resolve));
    const [any] = bridges as [Server];
    // Names change hands in a circle, so that nothing but the right order succeeds.
    for (let n = 0; n < 3; n++) expect(await put(any, n, `${gate} ${n}`)).toBe(200);
    expect(await put(any, 0, `${gate} spare`)).toBe(200);
    expect(await put(any, 1, `${gate} 0`)).toBe(200);
    expect(await put(any, 0, `${gate} 1`)).toBe(200);
    const [replaying, other] = await roles();
    await until(() => legacy.received.some(({ body }) => body.includes(`${gate} 0`)));
    await replaying.kill();
    expect(await put(other, 3, `${gate} meanwhile`)).toBe(200);
    legacy.behaviour[gate] = undefined;
    open();
    await untilReplayed();
    expect(await areEqual()).toBe(true);
    expect(await queue.listSetAside(organizationId)).toEqual([]);
    await replaying.restart();
  },
);

test('a replayer that is killed at any moment loses nothing and sets nothing aside', async () => {
  const stopping = new AbortController();
  let accepted = 0;
  const writing = users.map(async (_user, n) => {
    for (let round = 0; !stopping.signal.aborted; round++) {
      // A connection to a killed instance may fail.
      const bridge = bridges[round % 2] as Server;
      const status = await put(bridge, n, `name ${n} ${round}`).catch(() => 0);
      if (status === 200) accepted += 1;
      await sleep(30);
    }
  });
  const [replaying] = await roles();
  await sleep(Math.random() * 500);
  await replaying.kill();
  // Once the lease of the killed one has ended, the other one goes on.
  await until(async () => (await roles())[0] !== replaying);
  stopping.abort();
  await Promise.all(writing);
  await untilReplayed();
  expect(accepted).toBeGreaterThan(50);
  expect(await areEqual()).toBe(true);
  expect(await queue.listSetAside(organizationId)).toEqual([]);
});
