import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pause, resume, startBridgeProcess, type Server } from '../../support/processes.ts';
import { createReplayQueue, type ReplayQueue } from '../../../src/cutover/replay/queue/queue.ts';
import {
  cutoverKey,
  denylistKey,
  organizationBase,
  profileKey,
  replayerKey,
} from '../../../src/redis/keys.ts';
import { startLegacy, type Legacy } from '../../support/legacy/legacy.ts';
import { createTestOrganization } from '../../support/bridge.ts';
import { environmentFor, freshPrefix } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { useTestStore } from '../../support/use-store.ts';

/*
 * Two real bridges in mode reverse. The one that replays is killed: while the legacy service has a change that has not
 * taken effect, while its response is on its way, and at moments that nobody chose.
 */

const organizationId = 'acme';
const prefix = freshPrefix();
const users = Array.from({ length: 8 }, (_, n) => `user-${n}`);
let legacy: Legacy;
const store = await useTestStore();
let queue: ReplayQueue;
let keys: string[];
let adminKey: string;
let bridges: Server[];

beforeAll(async () => {
  legacy = await startLegacy();
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
  adminKey = (await newKey({ role: 'admin' })).apiKey;
  legacy.addKey(adminKey, { organization: organizationId, role: 'admin' });
  const environment = {
    ...environmentFor(prefix),
    LEGACY_BASE_URL: legacy.url,
    LEGACY_TIMEOUT: '1',
    REPLAY_SECRET: 's'.repeat(40),
  };
  bridges = await Promise.all([startBridgeProcess(environment), startBridgeProcess(environment)]);
});
afterAll(async () => {
  for (const bridge of bridges) await bridge.stop();
  await legacy.close();
});

const send = async (url: string, method: string, apiKey: string, body: unknown): Promise<number> => {
  const response = await fetch(url, {
    method,
    body: JSON.stringify(body),
    headers: {
      'content-type': 'application/json',
      'x-api-key': apiKey,
      'x-platform-organization-id': organizationId,
    },
  });
  await response.arrayBuffer();
  return response.status;
};

const put = async ({ url }: Server, user: number, username: string): Promise<number> =>
  await send(`${url}/api/profile/`, 'PUT', keys[user] ?? '', { username });

const denylist = async ({ url }: Server, method: 'POST' | 'DELETE', body: unknown): Promise<number> =>
  await send(`${url}/api/profile/username/deny/`, method, adminKey, body);

/** The bridge that replays now, and the other one. */
async function roles(): Promise<[replaying: Server, other: Server]> {
  const holder = await until(() => store.get(replayerKey(prefix)));
  const isFirst = holder.includes(`-${bridges[0]?.pid()}-`);
  const [first, second] = bridges as [Server, Server];
  return isFirst ? [first, second] : [second, first];
}

const areEqual = async (): Promise<boolean> => {
  const there = legacy.organization(organizationId);
  const base = organizationBase(prefix, organizationId);
  const here = await Promise.all(users.map((user) => store.hget(profileKey(base, user), 'u')));
  const denied = (await store.hkeys(denylistKey(base, '0'))).sort().join();
  return (
    denied === [...there.denied].sort().join() &&
    here.every((name, n) => (there.profiles.get(users[n] ?? '')?.username ?? null) === name)
  );
};

const untilReplayed = () => until(async () => (await queue.state()).entries === 0);

test.each([
  ['that had not taken effect', 'gate'],
  ['whose response was on its way', 'answerGate'],
] as const)(
  'a change %s when its replayer was killed is sent again by another replayer, which goes on',
  async (_which, gate) => {
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

test.each<[string, first: (by: Server) => Promise<number>, second: (by: Server) => Promise<number>]>([
  ['old name', (by) => put(by, 5, 'old name'), (by) => put(by, 5, 'new name')],
  [
    'denied name',
    (by) => denylist(by, 'POST', { 'denied name': 'x' }),
    (by) => denylist(by, 'DELETE', ['denied name']),
  ],
])(
  'after a replayer was paused beyond its lease, and its request took effect after later ones (%s), the current state is sent again',
  async (text, first, second) => {
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => (open = resolve));
    let sent = 0;
    legacy.behaviour.gate = ({ body }) => (body.includes(text) && ++sent === 1 ? opened : undefined);
    const [any] = bridges as [Server];
    expect(await first(any)).toBeLessThan(300);
    const [replaying, other] = await roles();
    await until(() => sent === 1);
    pause(replaying);
    try {
      expect(await second(other)).toBeLessThan(300);
      await untilReplayed();
      expect(await areEqual()).toBe(true);
      open();
      await until(async () => !(await areEqual()));
    } finally {
      resume(replaying);
      legacy.behaviour.gate = undefined;
    }
    await until(areEqual);
    await untilReplayed();
    expect(await areEqual()).toBe(true);
    expect(await queue.listSetAside(organizationId)).toEqual([]);
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
  await until(() => accepted > 50);
  stopping.abort();
  await Promise.all(writing);
  await untilReplayed();
  expect(await areEqual()).toBe(true);
  expect(await queue.listSetAside(organizationId)).toEqual([]);
});
