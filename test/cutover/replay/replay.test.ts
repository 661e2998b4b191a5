import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createReplayQueue, type ReplayQueue } from '../../../src/cutover/replay/queue/queue.ts';
import { apiKeyKey, cutoverKey, hashApiKey, profileKey, replayKey } from '../../../src/redis/keys.ts';
import type { LegacyOrganization } from '../../support/legacy/organization.ts';
import { runTool } from '../../support/tools/admin.ts';
import { startLegacyBridge, type LegacyBridge } from '../../support/legacy/bridge.ts';
import { until } from '../../support/until.ts';
import { redPng } from '../../support/requests/pictures.ts';
import { environmentFor } from '../../support/redis.ts';

const legacyTimeout = 500;
let here: LegacyBridge;
let there: LegacyOrganization;
let queue: ReplayQueue;
let admin: string;
let png: Buffer;
let users = 0;

beforeAll(async () => {
  here = await startLegacyBridge({ legacyTimeout, replaySecret: 's'.repeat(32) }, {}, 'reverse');
  there = here.legacy.organization(here.organization.id);
  queue = createReplayQueue(here.bridge.store, here.bridge.config.keyPrefix);
  admin = await here.admin();
  png = await redPng();
});
afterAll(() => here.close());

let ada: User;
let bob: User;
let eve: User;
beforeEach(async () => {
  [ada, bob, eve] = [await newUser(), await newUser(), await newUser()];
});
afterEach(async () => {
  Object.assign(here.legacy.behaviour, { failWith: undefined, reset: undefined, gate: undefined });
  await untilReplayed();
  for (const { id } of await queue.listSetAside(here.organization.id)) {
    await queue.drop(here.organization.id, id);
  }
});

interface User {
  id: string;
  key: string;
}

const newUser = async (): Promise<User> => {
  const id = `user-${++users}`;
  return { id, key: await here.player(id) };
};

const send = async (key: string, method: string, path: string, body: unknown): Promise<number> => {
  const headers = { 'content-type': 'application/json' };
  return (await here.send(key, method, path, { body: JSON.stringify(body), headers })).status;
};

const put = async ({ key }: User, change: unknown): Promise<number> =>
  await send(key, 'PUT', '/api/profile/', change);

const upload = async ({ key }: User, fields: Record<string, string> = {}): Promise<number> => {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  body.append('profilePicture', new Blob([new Uint8Array(png)], { type: 'image/png' }), 'me.png');
  return (await here.send(key, 'PUT', '/api/profile/', { body })).status;
};

const denylist = async (method: string, path: string, body: unknown): Promise<number> =>
  await send(admin, method, `/api/profile/username/${path}/`, body);

const stored = async ({ id }: User): Promise<Record<string, string>> =>
  await here.bridge.store.hgetall(profileKey(here.organization.base, id));

const state = async () => await queue.state();

const untilReplayed = () => until(async () => (await state()).entries === 0);

const nameThere = ({ id }: User): string | undefined => there.profiles.get(id)?.username;

const tool = (command: string) => {
  const env = { ...environmentFor(here.bridge.config.keyPrefix), LEGACY_BASE_URL: here.legacy.url };
  return runTool(env, command);
};

describe('an accepted change reaches the legacy service:', () => {
  test('a profile with all its fields, and null where a client unset one', async () => {
    expect(await put(ada, { username: 'Ünï ☃', profilePictureObjectDefinitionId: null })).toBe(200);
    await untilReplayed();
    expect(there.profiles.get(ada.id)).toEqual({ username: 'Ünï ☃' });
    expect(await put(ada, {})).toBe(200);
    await untilReplayed();
    const { url, body, headers } = here.legacy.received.at(-1) ?? {};
    expect([url, body?.toString(), headers?.['x-api-key']]).toEqual(['/api/profile/', '{}', ada.key]);
  });

  test('an uploaded picture, byte by byte; where the legacy service shows it is remembered', async () => {
    expect(await upload(ada, { username: 'With picture' })).toBe(200);
    await untilReplayed();
    const shown = there.profiles.get(ada.id);
    expect(shown).toEqual({ username: 'With picture', profilePictureUrl: expect.stringMatching(/^http/) });
    const { pf = '', po } = await stored(ada);
    expect(po).toBe(shown?.profilePictureUrl);
    const sent = here.legacy.received.at(-1)?.body ?? Buffer.of();
    const kept = await fetch(`${here.bridge.url}/media/${pf}`);
    expect(sent.includes(Buffer.from(await kept.arrayBuffer()))).toBe(true);
  });

  test('fields and an uploaded picture in a request each, as the contract has a form for each', async () => {
    const before = here.legacy.received.length;
    expect(await upload(ada, { username: 'Both forms' })).toBe(200);
    await untilReplayed();
    expect(await upload(ada)).toBe(200);
    await untilReplayed();
    const sent = here.legacy.received.slice(before);
    const types = sent.map(({ headers }) => headers['content-type']?.split(';')[0]);
    expect(types).toEqual(['application/json', 'multipart/form-data', 'multipart/form-data']);
    expect(sent[0]?.body.toString()).toBe('{"username":"Both forms"}');
    expect(sent[1]?.body.includes('Both forms')).toBe(false);
  });

  test('bans with renames, removals and overwrites, in order with the profiles', async () => {
    await put(ada, { username: 'Rude' });
    expect(await denylist('POST', 'deny', { Rude: 'Polite', 7: 'x', ['__proto__']: 'y' })).toBe(204);
    await put(bob, { username: 'Unrelated' });
    expect(await denylist('DELETE', 'deny', ['7'])).toBe(200);
    await put(bob, { username: '7' });
    await untilReplayed();
    expect([nameThere(ada), nameThere(bob)]).toEqual(['Polite', '7']);
    expect([...there.denied].sort()).toEqual(['Rude', '__proto__']);
    const names = Array.from({ length: 300 }, (_, n) => `denied-${n}`);
    expect(await denylist('PUT', 'denylist', names)).toBe(204);
    expect(await put(ada, { username: 'Rude' })).toBe(200);
    await untilReplayed();
    expect([...there.denied].sort()).toEqual(names.toSorted());
    expect(nameThere(ada)).toBe('Rude');
  });

  test('names that users exchange while the legacy service is out of order', async () => {
    await put(ada, { username: 'one' });
    await put(bob, { username: 'two' });
    await untilReplayed();
    here.legacy.behaviour.failWith = 503;
    await put(ada, { username: 'aside' });
    await put(bob, { username: 'one' });
    await put(ada, { username: 'two' });
    await put(eve, { username: 'aside' });
    await until(() => here.legacy.received.some(({ body }) => body.includes('aside')));
    here.legacy.behaviour.failWith = undefined;
    await untilReplayed();
    expect([ada, bob, eve].map(nameThere)).toEqual(['two', 'one', 'aside']);
    expect((await state()).setAside).toBe(0);
  });

  test('although a response is lost, before or after the change took effect', async () => {
    for (const reset of ['before', 'after'] as const) {
      here.legacy.behaviour.reset = reset;
      await put(ada, { username: `lost ${reset}` });
      await put(bob, { username: `other ${reset}` });
      await until(() => here.legacy.received.some(({ body }) => body.includes(`lost ${reset}`)));
      here.legacy.behaviour.reset = undefined;
      await untilReplayed();
      expect([ada, bob].map(nameThere)).toEqual([`lost ${reset}`, `other ${reset}`]);
    }
  });
});

test('no API key is stored in plain text, or longer than its change waits', async () => {
  let open = (): void => {};
  here.legacy.behaviour.gate = new Promise<void>((resolve) => (open = resolve));
  await put(ada, { username: 'Secret' });
  const key = replayKey(here.organization.base);
  const queued = JSON.stringify(await here.bridge.store.xrange(key, '-', '+'));
  expect(queued).toContain('sealed');
  expect(queued).not.toContain(ada.key);
  open();
  await untilReplayed();
  expect(await here.bridge.store.xlen(key)).toBe(0);
});

describe('a change that the legacy service refuses', () => {
  const refuse = async (): Promise<void> => {
    // Not through the bridge.
    there.save('stranger', { username: `Name of ${ada.id}` });
    expect(await put(ada, { username: `Name of ${ada.id}` })).toBe(200);
    await untilReplayed();
  };
  afterEach(() => there.save('stranger', {}));

  test('is set aside with status and code, and holds nobody up', async () => {
    await refuse();
    await put(ada, { avatarObjectDefinitionId: null });
    await untilReplayed();
    expect(await queue.listSetAside(here.organization.id)).toMatchObject([
      { caller: { userId: ada.id }, status: 409, reason: 'E_TAKEN' },
    ]);
    const { out } = await tool('cutover aside list');
    expect(out).toMatch(
      new RegExp(
        `^\\d+-\\d+  ${here.organization.id}  put by ${ada.id}  accepted .*: E_TAKEN \\(status 409\\)\n$`,
      ),
    );
    expect(await tool('cutover set mirror')).toMatchObject({
      code: 1,
      err: expect.stringContaining('1 change that the legacy service refused would be undone here'),
    });
  });

  test('reaches it if the user makes the change again, once it is accepted there', async () => {
    await refuse();
    there.save('stranger', {});
    expect(await put(ada, { username: `Name of ${ada.id}` })).toBe(200);
    await untilReplayed();
    expect(nameThere(ada)).toBe(`Name of ${ada.id}`);
  });

  test('is retried with the user’s profile as it is by then', async () => {
    await refuse();
    await put(ada, { avatarObjectDefinitionId: null });
    there.save('stranger', {});
    await put(ada, { username: 'Of today' });
    await untilReplayed();
    expect(await tool('cutover aside retry --all')).toMatchObject({
      code: 0,
      out: '1 change queued again.\n',
    });
    await untilReplayed();
    expect(await stored(ada)).toMatchObject({ u: 'Of today' });
    expect(nameThere(ada)).toBe('Of today');
    expect((await state()).setAside).toBe(0);
  });

  test('is retried with the picture of by then; where the legacy service shows it is remembered', async () => {
    await refuse();
    expect(await upload(ada)).toBe(200);
    await untilReplayed();
    const before = there.profiles.get(ada.id)?.profilePictureUrl;
    there.save('stranger', {});
    expect(await tool('cutover aside retry --all')).toMatchObject({ code: 0 });
    await untilReplayed();
    expect([nameThere(ada), (await state()).setAside]).toEqual([`Name of ${ada.id}`, 0]);
    const { po } = await stored(ada);
    expect(po).not.toBe(before);
    expect(po).toBe(there.profiles.get(ada.id)?.profilePictureUrl);
  });

  test('is retried once its name is free: of users who exchanged names, one takes a third name meanwhile', async () => {
    const name = (which: string): string => `${which} of ${ada.id}`;
    await put(ada, { username: name('First') });
    await put(bob, { username: name('Second') });
    await untilReplayed();
    here.legacy.behaviour.failWith = 422;
    await put(ada, { username: name('Spare') });
    await put(bob, { username: name('First') });
    await put(ada, { username: name('Second') });
    await untilReplayed();
    here.legacy.behaviour.failWith = undefined;
    const retry = async ({ id }: User) => {
      for (const { id: change, caller } of await queue.listSetAside(here.organization.id)) {
        if (caller.userId === id) await queue.retry(here.organization.id, change);
      }
      await untilReplayed();
    };
    await retry(bob);
    expect((await state()).setAside).toBe(3);

    await put(ada, { username: name('Third') });
    await retry(bob);
    await put(ada, { username: name('Second') });
    await retry(ada);
    expect([nameThere(ada), nameThere(bob)]).toEqual([name('Second'), name('First')]);
    expect((await state()).setAside).toBe(0);
  });

  test('can be dropped; an unknown id is an error', async () => {
    await refuse();
    const [change] = await queue.listSetAside(here.organization.id);
    expect(await tool(`cutover aside drop ${change?.id} 1-1`)).toMatchObject({
      code: 1,
      out: '1 change dropped.\n',
      err: expect.stringContaining('not set aside: 1-1'),
    });
    expect(await tool('cutover aside list')).toMatchObject({ code: 0, out: 'No change is set aside.\n' });
    expect(await tool('cutover aside drop')).toMatchObject({ code: 2 });
  });

  test('in part, as a ban, is set aside with how much of it', async () => {
    there.save('stranger', { username: 'Banned' });
    there.save('another', { username: 'Taken' });
    expect(await denylist('POST', 'deny', { Banned: 'Taken', Fine: 'x' })).toBe(204);
    await untilReplayed();
    expect(await queue.listSetAside(here.organization.id)).toMatchObject([
      { change: { kind: 'ban' }, status: 200, reason: '1 of the names could not be denied' },
    ]);
    there.save('another', {});
    await tool('cutover aside retry --all');
    await untilReplayed();
    expect([there.denied.has('Banned'), (await state()).setAside]).toEqual([true, 0]);
    await denylist('PUT', 'denylist', []);
  });
});

test.each(['list', 'retry --all', 'drop --all'])(
  'aside %s refuses an organization that does not exist',
  async (what) => {
    const refused = { code: 1, err: expect.stringContaining('there is no organization "nobody"') };
    expect(await tool(`cutover aside ${what} --org nobody`)).toMatchObject(refused);
  },
);

describe('a retry of a denylist change that was set aside', () => {
  afterEach(async () => {
    there.save('stranger', {});
    await denylist('PUT', 'denylist', []);
  });

  test('removes those of its names that are still allowed', async () => {
    await denylist('POST', 'deny', { Free: 'x', Again: 'y' });
    await untilReplayed();
    there.save('stranger', { username: 'Free' });
    expect(await denylist('DELETE', 'deny', ['Free', 'Again'])).toBe(200);
    await untilReplayed();
    expect(await queue.listSetAside(here.organization.id)).toMatchObject([
      { change: { kind: 'remove' }, status: 200, reason: '1 of the names could not be removed' },
    ]);
    await denylist('POST', 'deny', { Again: 'y' });
    there.save('stranger', {});
    await tool('cutover aside retry --all');
    await untilReplayed();
    expect([...there.denied]).toEqual(['Again']);
    expect((await state()).setAside).toBe(0);
  });

  test('sends the whole denylist as it is by then', async () => {
    there.save('stranger', { username: 'Listed' });
    expect(await denylist('PUT', 'denylist', ['Listed', 'First'])).toBe(204);
    await untilReplayed();
    expect(await queue.listSetAside(here.organization.id)).toMatchObject([
      { change: { kind: 'overwrite' }, status: 409, reason: 'E_IN_USE' },
    ]);
    expect([...there.denied]).toEqual([]);
    await denylist('POST', 'deny', { Second: 'x' });
    await denylist('DELETE', 'deny', ['First']);
    there.save('stranger', {});
    await tool('cutover aside retry --all');
    await untilReplayed();
    expect([...there.denied].sort()).toEqual(['Listed', 'Second']);
    expect((await state()).setAside).toBe(0);
  });
});

test('another key of the same user is used if the legacy service refuses the first', async () => {
  const other = await here.player(ada.id);
  let open = (): void => {};
  here.legacy.behaviour.gate = new Promise<void>((resolve) => (open = resolve));
  const { apiKey: unknown } = await here.organization.newKey({ role: 'player', userId: ada.id });
  await put({ ...ada, key: unknown }, { username: 'By a key unknown there' });
  await put({ ...ada, key: other }, { avatarObjectDefinitionId: null });
  open();
  await untilReplayed();
  expect(nameThere(ada)).toBe('By a key unknown there');
});

test('a key that was revoked here after its change was accepted still replays the change', async () => {
  let open = (): void => {};
  here.legacy.behaviour.gate = new Promise<void>((resolve) => (open = resolve));
  await put(ada, { username: 'Revoked' });
  await here.bridge.store.del(apiKeyKey(here.organization.base, hashApiKey(ada.key)));
  open();
  await untilReplayed();
  expect(nameThere(ada)).toBe('Revoked');
});

test('a wrong address makes the replay pause, which status says, and nothing is lost', async () => {
  here.legacy.behaviour.failWith = 404;
  await put(ada, { username: 'Too early' });
  await until(async () => (await state()).pausedBecause !== undefined);
  const { out } = await tool('cutover status');
  expect(out).toMatch(
    /Replay to the legacy service: 1 waiting, the oldest has waited \d+\.\d s; set aside: 0/,
  );
  expect(out).toMatch(
    /The replay is paused: the legacy service answered a change with 404: LEGACY_BASE_URL .* \(change \d+-\d+ of organization /,
  );
  here.legacy.behaviour.failWith = undefined;
  await untilReplayed();
  expect(nameThere(ada)).toBe('Too early');
  await until(async () => (await state()).pausedBecause === undefined);
});

test('status says since when a change is sent again, and what the legacy service answered', async () => {
  here.legacy.behaviour.failWith = 503;
  await put(ada, { username: 'Patient' });
  await until(async () => (await state()).organizations[0]?.retried !== undefined);
  const { out } = await tool('cutover status');
  expect(out).toContain(`\n  ${here.organization.id}: the first change has been retried since 20`);
  expect(out).toMatch(/Z; last response: 503( \(\w+\))?\n/);
  here.legacy.behaviour.failWith = undefined;
  await untilReplayed();
  expect(nameThere(ada)).toBe('Patient');
});

test('the mode does not go back while a change waits for the legacy service', async () => {
  let open = (): void => {};
  here.legacy.behaviour.gate = new Promise<void>((resolve) => (open = resolve));
  expect(await put(ada, { username: `Waits ${ada.id}` })).toBe(200);
  const { code, err } = await tool('cutover set mirror');
  open();
  await untilReplayed();
  expect([code, err]).toEqual([1, expect.stringContaining('in time: run this again, or see')]);
});

test('the mode does not go back if the last change is refused while changes are on hold', async () => {
  const { store, config } = here.bridge;
  const isOnHold = async () => (await store.hget(cutoverKey(config.keyPrefix), 'phase')) === 'stop';
  here.legacy.behaviour.gate = until(isOnHold);
  there.save('stranger', { username: `Last of ${ada.id}` });
  expect(await put(ada, { username: `Last of ${ada.id}` })).toBe(200);
  const { code, err } = await tool('cutover set mirror --hold 60');
  there.save('stranger', {});
  expect([code, err]).toEqual([
    1,
    expect.stringContaining(
      'reverse as before: 1 change that the legacy service refused would be undone here',
    ),
  ]);
  expect(JSON.parse((await tool('cutover show --json')).out)).toMatchObject({ mode: 'reverse' });
});

test('back in mirror, both sides are equal', async () => {
  await put(ada, { username: 'Last', avatarObjectDefinitionId: null });
  expect(await tool('cutover set mirror --hold 60')).toMatchObject({
    code: 0,
    out: expect.stringContaining('mirror'),
  });
  expect(nameThere(ada)).toBe('Last');
  await until(async () => {
    const response = await here.send(ada.key, 'GET', '/api/profile/');
    return response.headers.get('x-powered-by') === 'legacy' || (await response.text()).includes('   ');
  });
  const status = JSON.parse((await tool('cutover status --json')).out) as { comparisons: object };
  expect(status.comparisons).toMatchObject({ different: 0, differingUsers: 0 });
});
