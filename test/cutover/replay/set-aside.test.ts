import type { IncomingHttpHeaders } from 'node:http';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { QueuedChange } from '../../../src/cutover/replay/queue/changes.ts';
import type { Replayer } from '../../../src/cutover/replay/replayer.ts';
import { gatherEvidence } from '../../../src/cutover/verdict/evidence.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { organizationBase, organizationsKey, replayAsideKey } from '../../../src/redis/keys.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { runTool } from '../../support/tools/admin.ts';
import { environmentFor } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { keyIdOf, openReplaying, organizationId, type Replaying } from './replaying.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let here: Replaying;
let replayers: Replayer[];
beforeEach(async () => {
  here = await openReplaying(store);
  replayers = [];
});
afterEach(async () => {
  for (const one of replayers) await one.close();
  await here.close();
});

const tenMinutes = 600_000;
let clock = 0;
const start = (id = 'one'): Replayer => {
  const replayer = here.start(id, () => performance.now() + clock);
  replayers.push(replayer);
  return replayer;
};

/** How often the legacy service has been sent a change of this user. */
const sentBy = (userId: string): number =>
  here.legacy.received.filter(
    ({ method, headers }) => method === 'PUT' && headers['x-api-key'] === `secret of ${keyIdOf(userId)}`,
  ).length;

const setAside = async () => await here.queue.listSetAside(organizationId);

describe('a change that the legacy service fails to make', () => {
  const failingFor = (...users: string[]): void => {
    here.legacy.behaviour.failWith = ({ method, headers }) =>
      method === 'PUT' && users.some((user) => headers['x-api-key'] === `secret of ${keyIdOf(user)}`)
        ? 500
        : undefined;
  };

  test('is set aside after ten minutes, if a read with the same key succeeds', async () => {
    failingFor('ada');
    await here.put('ada', 'Ada');
    await here.put('bob', 'Bob');
    start();
    await until(async () => sentBy('ada') >= 1 && (await here.waiting()) === 1);
    clock += tenMinutes - 1000;
    await until(() => sentBy('ada') >= 2);
    expect(await setAside()).toEqual([]);
    clock += tenMinutes;
    await until(() => sentBy('ada') >= 3);
    clock += tenMinutes;
    await until(async () => (await here.waiting()) === 0);
    expect(await setAside()).toMatchObject([
      {
        caller: { userId: 'ada' },
        status: 500,
        reason: 'it failed for ten minutes, while other requests with the same key succeeded',
      },
    ]);
  });

  test.each([
    ['seconds', '60'],
    ['a date', 'Sun, 06 Nov 1994 08:50:37 GMT'],
  ])('is not sent again before the time that Retry-After asks for, in %s', async (_form, retryAfter) => {
    const headers = { date: 'Sun, 06 Nov 1994 08:49:37 GMT', 'retry-after': retryAfter };
    here.legacy.behaviour.override = { method: 'PUT', status: 429, headers, chunks: [] };
    const warn = jest.spyOn(here.log, 'warn');
    await here.put('ada', 'Ada');
    start();
    // Once the answer has been read.
    await until(() => warn.mock.calls.length > 0);
    here.legacy.behaviour.override = undefined;
    clock += 25_000;
    await here.put('bob', 'Bob');
    await until(() => here.legacy.organization(organizationId).profiles.has('bob'));
    expect(sentBy('ada')).toBe(1);
    clock += 35_000;
    await until(async () => (await here.waiting()) === 0);
    expect(sentBy('ada')).toBe(2);
  });

  test('keeps waiting while reads are answered with a page', async () => {
    failingFor('ada');
    const page = { headers: {}, chunks: [Buffer.from('<!doctype html>')] };
    here.legacy.behaviour.override = { ...page, method: 'GET' };
    await here.put('ada', 'Ada');
    start();
    for (const times of [1, 2, 3, 4]) {
      await until(() => sentBy('ada') >= times);
      clock += tenMinutes;
    }
    expect(await setAside()).toEqual([]);
  });

  test('is logged with the reason at once, and others that fail meanwhile are not', async () => {
    const warn = jest.spyOn(here.log, 'warn');
    here.legacy.behaviour.failWith = 503;
    await here.put('ada', 'Ada');
    await here.put('bob', 'Bob');
    start();
    await until(() => sentBy('ada') >= 1 && sentBy('bob') >= 1);
    await until(() => warn.mock.calls.length > 0);
    here.legacy.behaviour.failWith = undefined;
    await until(async () => (await here.waiting()) === 0);
    expect(warn.mock.calls).toEqual([
      [
        expect.stringMatching(/^a change is waiting/),
        expect.objectContaining({ organizationId, status: 503 }),
      ],
    ]);
  });

  test('is logged with the reason why there is no response, too', async () => {
    const warn = jest.spyOn(here.log, 'warn');
    here.legacy.behaviour.reset = 'before';
    await here.put('ada', 'Ada');
    start();
    await until(() => warn.mock.calls.length > 0);
    expect(warn.mock.calls).toEqual([
      [expect.any(String), expect.objectContaining({ status: 0, code: 'read ECONNRESET' })],
    ]);
  });

  test('keeps waiting while reads fail as well, and is made once the legacy service has recovered', async () => {
    here.legacy.behaviour.failWith = 500;
    await here.put('ada', 'Ada');
    start();
    const reads = (): number => here.legacy.received.filter(({ method }) => method === 'GET').length;
    await until(() => sentBy('ada') >= 1);
    while (reads() < 2) {
      const before = sentBy('ada');
      clock += tenMinutes;
      await until(() => sentBy('ada') > before);
    }
    expect(await setAside()).toEqual([]);
    here.legacy.behaviour.failWith = undefined;
    await until(async () => (await here.waiting()) === 0);
    expect(here.legacy.organization(organizationId).profiles.get('ada')).toEqual({ username: 'Ada' });
  });
});

test('a name that was refused is claimed again if an older change, which may release it, is made meanwhile', async () => {
  const isBobs = ({ headers }: { headers: IncomingHttpHeaders }): boolean =>
    headers['x-api-key'] === `secret of ${keyIdOf('bob')}`;
  let answer = (): void => {};
  const adaIsDone = new Promise<void>((resolve) => (answer = resolve));
  here.legacy.behaviour.gate = (request) =>
    isBobs(request) ? adaIsDone : until(() => here.legacy.received.some(isBobs));
  // Decided before the change of ada, answered after it.
  here.legacy.behaviour.failWith = (request) => (isBobs(request) && sentBy('bob') === 1 ? 409 : undefined);
  await here.put('ada', 'Ada');
  await here.put('bob', 'Bob');
  start();
  await until(async () => (await here.waiting()) === 1);
  answer();
  await until(async () => (await here.waiting()) === 0);
  expect([sentBy('bob'), await setAside()]).toEqual([2, []]);
});

test('an overwrite that the legacy service answers with names in use is set aside, whatever the status', async () => {
  here.legacy.behaviour.override = { method: 'PUT', headers: {}, chunks: [Buffer.from('["Ada"]')] };
  await here.overwrite(['Ada', 'Eve']);
  start();
  await until(async () => (await here.waiting()) === 0);
  const reason = 'the list was not replaced: 1 of its names is in use';
  expect(await setAside()).toMatchObject([{ change: { kind: 'overwrite' }, status: 200, reason }]);
});

test('a change that was refused is set aside without what the legacy service says of it, which may be personal', async () => {
  const chunks = [Buffer.from('{"code":"Ada Lovelace is taken"}')];
  here.legacy.behaviour.override = { method: 'PUT', status: 422, headers: {}, chunks };
  await here.put('ada', 'Ada');
  start();
  await until(async () => (await here.waiting()) === 0);
  expect(await setAside()).toMatchObject([{ status: 422, reason: 'the legacy service refused it' }]);
});

test('a change of a profile that the legacy service makes otherwise is set aside', async () => {
  await here.put('ada', 'Ada ');
  await here.put('bob', 'Bob');
  start();
  await until(async () => (await here.waiting()) === 0);
  const there = here.legacy.organization(organizationId);
  expect([there.profiles.get('ada'), there.profiles.get('bob')]).toEqual([
    { username: 'Ada' },
    { username: 'Bob' },
  ]);
  expect(await setAside()).toMatchObject([
    { caller: { userId: 'ada' }, status: 200, reason: 'its answer shows another username' },
  ]);
});

/** Has a denylist operation answered with success and this body. */
const answering = (method: string, body: string): void => {
  here.legacy.behaviour.override = { method, headers: {}, chunks: [Buffer.from(body)] };
};

test.each([
  ['POST', '{"errors":[{"username":"bad","reason":"in use"}]}'],
  ['POST', '{"added":["good"],"notAdded":["bad"]}'],
  ['POST', '{"added":["good"],"errors":[{"username":"bad"}]}'],
  ['PUT', '{"usernames":[{"name":"bad"}]}'],
  ['DELETE', '{"usernamesDeleted":["good"],"inUse":["bad"]}'],
])('a denylist change by %s is set aside if %s does not say what was not done', async (method, body) => {
  await here.ban({ was: 'other' });
  start();
  await until(async () => (await here.waiting()) === 0);
  answering(method, body);
  if (method === 'POST') await here.ban({ good: 'x', bad: 'y' });
  else if (method === 'PUT') await here.overwrite(['good', 'bad']);
  else await here.remove(['was']);
  await until(async () => (await here.waiting()) === 0);
  expect(await setAside()).toMatchObject([{ status: 200, reason: 'its answer could not be read' }]);
});

test.each(['\n', 'null', '{}'])(
  'a denylist change that is answered with success and %j is made',
  async (body) => {
    answering('POST', body);
    await here.ban({ good: 'x' });
    start();
    await until(async () => (await here.waiting()) === 0);
    expect(await setAside()).toEqual([]);
  },
);

test('a page that something in front of the legacy service answers with success takes no change for made', async () => {
  const page = Buffer.from('<!doctype html><title>Maintenance</title>');
  const override = { method: 'PUT', headers: { 'content-type': 'text/html' }, chunks: [page] };
  here.legacy.behaviour.override = override;
  await here.put('ada', 'Ada');
  start();
  const reason = await until(async () => (await here.queue.state()).pausedBecause);
  expect(reason).toMatch(
    /^the legacy service answered a change with something other than JSON: LEGACY_BASE_URL is probably wrong \(change/,
  );
  expect([await here.waiting(), await setAside()]).toEqual([1, []]);
  here.legacy.behaviour.override = undefined;
  await until(async () => (await here.waiting()) === 0);
  expect(here.legacy.organization(organizationId).profiles.get('ada')).toEqual({ username: 'Ada' });
});

test.each(['', '\n', 'null', '{}'])('a change that is answered with success and %j is made', async (body) => {
  const chunks = [Buffer.from(body)];
  here.legacy.behaviour.override = { method: 'PUT', headers: { 'content-type': 'text/plain' }, chunks };
  await here.put('ada', 'Ada');
  start();
  await until(async () => (await here.waiting()) === 0);
  expect([sentBy('ada'), await setAside()]).toEqual([1, []]);
});

test('a change keeps the time at which it was accepted, however often it is retried', async () => {
  here.legacy.behaviour.failWith = 400;
  await here.put('ada', 'Ada');
  start();
  const aside = async (not = ''): Promise<{ id: string; at: number }> =>
    await until(async () => (await setAside()).find(({ id }) => id !== not));
  const first = await aside();
  await here.queue.retry(organizationId, first.id);
  const second = await aside(first.id);
  await here.queue.retry(organizationId, second.id);
  const third = await aside(second.id);
  expect(third.id).not.toBe(first.id);
  expect([second.at, third.at]).toEqual([first.at, first.at]);
});

test('all changes of one user and of the denylist can be retried together', async () => {
  here.legacy.behaviour.failWith = 400;
  for (const username of ['Ada', 'Eve']) await here.put('ada', username);
  for (const name of ['One', 'Two']) await here.ban({ [name]: 'Other' });
  start();
  await until(async () => (await here.waiting()) === 0);
  const refused = await setAside();
  expect(refused).toHaveLength(4);

  here.legacy.behaviour.failWith = undefined;
  for (const { id } of refused) await here.queue.retry(organizationId, id);
  await until(async () => (await here.waiting()) === 0);
  expect(await setAside()).toEqual([]);
  const there = here.legacy.organization(organizationId);
  expect(there.profiles.get('ada')).toEqual({ username: 'Eve' });
  expect([...there.denied]).toEqual(['One', 'Two']);
});

test('a change whose key an instance cannot decrypt makes the replay pause, which names the instance', async () => {
  await here.put('ada', 'Ada');
  const withAnotherSecret = here.start('one', undefined, undefined, { open: () => undefined });
  const reason = await until(async () => (await here.queue.state()).pausedBecause);
  await withAnotherSecret.close();
  expect(reason).toMatch(/^an API key was encrypted under a REPLAY_SECRET that instance one does not have: /);
  start('two');
  await until(async () => (await here.waiting()) === 0);
  expect(await setAside()).toEqual([]);
});

test('a retry whose key an instance cannot decrypt is set aside again, and holds nobody up', async () => {
  here.legacy.behaviour.failWith = 400;
  await here.put('ada', 'Ada');
  start();
  const refused = await until(async () => (await setAside()).at(0));
  await replayers.pop()?.close();
  here.legacy.behaviour.failWith = undefined;

  await here.queue.retry(organizationId, refused.id);
  await here.put('bob', 'Bob');
  const open = ({ caller: { userId } }: Pick<QueuedChange, 'caller'>) =>
    userId === 'bob' ? `secret of ${keyIdOf('bob')}` : undefined;
  replayers.push(here.start('two', undefined, undefined, { open }));
  await until(async () => (await here.waiting()) === 0);
  expect(here.legacy.organization(organizationId).profiles.get('bob')).toEqual({ username: 'Bob' });
  const [again] = await setAside();
  expect(again).toMatchObject({
    caller: { userId: 'ada' },
    status: 0,
    reason: 'its API key was encrypted under a REPLAY_SECRET that instance two does not have',
  });
  // Once an instance has that secret again.
  await replayers.pop()?.close();
  await here.queue.retry(organizationId, again?.id ?? '');
  start('three');
  await until(() => here.legacy.organization(organizationId).profiles.has('ada'));
});

test('an instance that cannot decrypt a key leaves the replay to another one at once', async () => {
  await here.put('ada', 'Ada');
  // For it, the pause never ends.
  const withAnotherSecret = here.start('one', () => 0, undefined, { open: () => undefined });
  await until(async () => (await here.queue.state()).pausedBecause);
  start('two');
  await until(async () => (await here.waiting()) === 0);
  await withAnotherSecret.close();
  expect((await here.queue.state()).pausedBecause).toBeUndefined();
});

describe('a change whose key the legacy service refuses', () => {
  /** As if the first refusals had been so long ago. */
  const earlier = async (ms: number, ...users: string[]): Promise<void> => {
    const key = `${here.base}cutover:replay-refusals`;
    for (const keyId of users.map(keyIdOf)) {
      await until(async () => (await store.hexists(key, keyId)) === 1);
      await store.hincrby(key, keyId, -ms);
    }
  };

  test('is set aside after ten minutes in which another key was accepted, by whichever instance', async () => {
    await here.put('ada', 'Ada', true);
    await here.put('ada', 'Ada 2', true);
    start();
    await until(() => sentBy('ada') >= 1);
    await here.put('bob', 'Bob');
    await until(() => here.legacy.organization(organizationId).profiles.has('bob'));
    clock += tenMinutes;
    await until(() => sentBy('ada') >= 2);
    expect(await setAside()).toEqual([]);
    await replayers[0]?.close();

    await earlier(tenMinutes, 'ada');
    start('two');
    await until(async () => (await here.waiting()) === 0);
    const reason =
      'E_KEY: its API key was refused for ten minutes, while other keys of the organization were accepted';
    const aside = { caller: { userId: 'ada' }, status: 401, reason };
    expect(await setAside()).toMatchObject([aside, aside]);
    // Not once for each waiting change, though each has the same key encrypted separately.
    expect(sentBy('ada')).toBe(6);
  });

  test('does not hold up denylist changes for good, even if nothing else is sent meanwhile', async () => {
    await here.put('ada', 'Ada', true);
    await here.ban({ rude: 'polite' });
    await here.put('bob', 'Bob');
    start();
    await until(() => sentBy('ada') >= 1);
    await earlier(tenMinutes, 'ada');
    clock += tenMinutes;
    await until(async () => (await here.waiting()) === 0);
    expect(await setAside()).toMatchObject([{ caller: { userId: 'ada' }, status: 401 }]);
    const there = here.legacy.organization(organizationId);
    expect([...there.denied, there.profiles.get('bob')?.username]).toEqual(['rude', 'Bob']);
  });

  test('keeps waiting if the legacy service accepts no key of the organization', async () => {
    for (const user of ['ada', 'bob']) await here.put(user, user, true);
    start();
    await until(() => sentBy('ada') >= 1 && sentBy('bob') >= 1);
    await earlier(tenMinutes, 'ada', 'bob');
    clock += tenMinutes;
    await until(() => sentBy('ada') >= 2 && sentBy('bob') >= 2);
    clock += tenMinutes;
    await until(() => sentBy('ada') >= 3);
    expect([await here.waiting(), await setAside()]).toEqual([2, []]);
  });

  test('gets another ten minutes once its key was accepted', async () => {
    here.legacy.behaviour.failWith = 401;
    await here.put('ada', 'Ada');
    start();
    await earlier(tenMinutes, 'ada');
    here.legacy.behaviour.failWith = undefined;
    await until(async () => (await here.waiting()) === 0);
    expect(await here.queue.refuse(organizationId, keyIdOf('ada'))).toEqual({
      forMs: 0,
      isOtherAccepted: false,
    });
  });

  test('makes the replay pause if three different keys are refused in a row, and names them and the remedy', async () => {
    for (const user of ['ada', 'bob', 'eve']) await here.put(user, user, true);
    start();
    await until(async () => (await here.queue.state()).pausedBecause !== undefined);
    const { pausedBecause = '' } = await here.queue.state();
    const [, named = ''] =
      /^the legacy service has refused 3 different API keys in a row \((.*)\): have it accept them/.exec(
        pausedBecause,
      ) ?? [];
    expect(named.split(', ').sort()).toEqual(['k_ada of acme', 'k_bob of acme', 'k_eve of acme']);
  });
});

test('cutover aside does not guess which change is meant by an id that two organizations have', async () => {
  await saveSettings(store, here.prefix, 'other', defaultSettings);
  const caller = { key: 'k', role: 'player', user: 'ada', sealed: '' };
  const row = JSON.stringify({ ...caller, kind: 'put', change: '{}', retry: '', status: '409', at: '2' });
  for (const id of [organizationId, 'other'])
    await store.hset(replayAsideKey(organizationBase(here.prefix, id)), '1-0', row);
  const env = environmentFor(here.prefix);
  expect(await runTool(env, 'cutover aside drop 1-0')).toEqual({
    code: 2,
    out: '',
    err: 'error: changes of several organizations have the id 1-0: add --org\n',
  });
  expect(await runTool(env, 'cutover aside drop 1-0 --org other')).toMatchObject({ code: 0 });
  expect(await setAside()).toHaveLength(1);
  expect(await runTool(env, 'cutover aside drop 1-0')).toMatchObject({ code: 0 });
  expect(await setAside()).toEqual([]);
});

test('an organization with a change that is set aside is missed if the registry loses it', async () => {
  here.legacy.behaviour.failWith = ({ method }) => (method === 'PUT' ? 422 : undefined);
  await here.put('ada', 'Ada');
  start();
  await until(async () => (await setAside()).length === 1 && (await here.queue.listed()).length === 0);
  await store.srem(organizationsKey(here.prefix), organizationId);
  expect(await gatherEvidence(store, here.prefix)).toMatchObject({ unregistered: [organizationId] });
});
