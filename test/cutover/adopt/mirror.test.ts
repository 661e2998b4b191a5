import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import {
  auditKey,
  comparisonsKey,
  cutoverKey,
  denylistChangeKey,
  denylistKey,
  differingUsersKey,
  failedAdoptionsKey,
  forwardedOrganizationsKey,
  gapsKey,
  lostNamesKey,
  organizationBase,
  profileKey,
  settingsKey,
  stageKey,
  stageOwnerKey,
  unsettledKey,
} from '../../../src/redis/keys.ts';
import { setWallet } from '../../../src/redis/operator/profile-data.ts';
import type { LegacyOrganization, LegacyProfile } from '../../support/legacy/organization.ts';
import { changeComparison } from '../../../src/redis/reindex/reindex.ts';
import { unusedPort } from '../../support/redis.ts';
import { faultsIn, openTestStore } from '../../support/store.ts';
import { readComparisons } from '../../../src/cutover/compare/summary.ts';
import { until } from '../../support/until.ts';
import { startLegacyBridge, type LegacyBridge } from '../../support/legacy/bridge.ts';

let here: LegacyBridge;
let there: LegacyOrganization;
let admin: string;
let users = 0;
let userId: string;
let player: string;

beforeAll(async () => {
  here = await startLegacyBridge({}, {}, 'mirror');
  there = here.legacy.organization(here.organization.id);
  admin = await here.admin();
});
afterAll(async () => {
  const { store, config } = here.bridge;
  const faults = await faultsIn(store, config.keyPrefix);
  await here.close();
  // Index and profiles agree after all changes of this file.
  expect(faults.filter(({ kind }) => kind.startsWith('username') || kind.startsWith('index'))).toEqual([]);
});
beforeEach(async () => {
  ({ userId, player } = await newUser());
});
afterEach(() => {
  Object.assign(here.legacy.behaviour, {
    delayMs: 0,
    lagMs: 0,
    failWith: undefined,
    reset: undefined,
    override: undefined,
    bare: false,
    gate: undefined,
  });
});

const newUser = async () => {
  const id = `user-${++users}`;
  return { userId: id, player: await here.player(id) };
};

const put = async (change: unknown, apiKey = player): Promise<number> =>
  (await here.send(apiKey, 'PUT', '/api/profile/', { body: JSON.stringify(change) })).status;

const upload = async (at = here, apiKey = player): Promise<void> => {
  const body = new FormData();
  body.append('profilePicture', new Blob(['new'], { type: 'image/png' }), 'new.png');
  await (await at.send(apiKey, 'PUT', '/api/profile/', { body })).text();
};

const get = async (apiKey = player): Promise<number> =>
  (await here.send(apiKey, 'GET', '/api/profile/')).status;

const denylist = async (method: string, path: string, body: unknown): Promise<number> => {
  const headers = { 'content-type': 'application/json' };
  const url = `/api/profile/username/${path}/`;
  return (await here.send(admin, method, url, { body: JSON.stringify(body), headers })).status;
};

/** How often the legacy service was asked for the profile with this key. */
const reads = (apiKey: string): number =>
  here.legacy.received.filter(({ method, headers }) => method === 'GET' && headers['x-api-key'] === apiKey)
    .length;

const stored = async (user = userId): Promise<Record<string, string>> =>
  await here.bridge.store.hgetall(profileKey(here.organization.base, user));

const deniedHere = async (): Promise<string[]> =>
  (await here.bridge.store.hkeys(`${here.organization.base}d0`)).sort();

const unsettled = async (): Promise<string[]> =>
  await here.bridge.store.hkeys(unsettledKey(here.organization.base));

const untilStored = async (holds: (profile: Record<string, string>) => boolean, user = userId) =>
  await until(async () => {
    const profile = await stored(user);
    return holds(profile) ? profile : undefined;
  });

describe('an accepted change of a profile', () => {
  test('is adopted as the legacy service shows it, with what it made of the values', async () => {
    expect(
      await put({
        username: '  Ada  ',
        avatarObjectDefinitionId: { datasourceId: 'd', objectDefinitionId: 'o' },
      }),
    ).toBe(200);
    const profile = await untilStored(({ u }) => u === 'Ada');
    expect(profile).toMatchObject({ ar: 'd\no', au: 'https://images.example.com/d/o.png', t: '' });
    expect(profile['b']).toBeUndefined();
    await until(async () => (await unsettled()).length === 0);
    expect(await put({ avatarObjectDefinitionId: null })).toBe(200);
    await untilStored(({ ar }) => ar === undefined);
  });

  test('keeps what GET does not show: an unverified wallet, a copied picture', async () => {
    const { store } = here.bridge;
    const { base } = here.organization;
    await setWallet(store, base, userId, '0x1', 'wu');
    there.save(userId, { profilePictureUrl: 'https://legacy/1.png' });
    await store.hset(profileKey(base, userId), {
      pf: 'AAAAAAAAAAAAAAAAAAAAAA.png',
      po: 'https://legacy/1.png',
    });
    await put({ username: 'Kept' });
    expect(await untilStored(({ u }) => u === 'Kept')).toMatchObject({
      wu: '0x1',
      pf: 'AAAAAAAAAAAAAAAAAAAAAA.png',
      po: 'https://legacy/1.png',
    });
    await put({ profilePictureObjectDefinitionId: null });
    const after = await untilStored(({ pf }) => pf === undefined);
    expect(after).toMatchObject({ wu: '0x1' });
    expect(await store.zscore(`${base}media`, 'AAAAAAAAAAAAAAAAAAAAAA.png')).not.toBeNull();
  });

  test('that brings a picture and is refused leaves no difference: the picture is at its legacy URL again', async () => {
    const { store } = here.bridge;
    const { base } = here.organization;
    const copied = { pf: 'AAAAAAAAAAAAAAAAAAAAAA.png', po: 'https://legacy/pictures/ada.png' };
    await store.hset(profileKey(base, userId), copied);
    const chunks = [Buffer.from('{}')];
    here.legacy.behaviour.override = { method: 'PUT', status: 413, headers: {}, chunks };
    await Promise.all([upload(), upload()]);
    await until(async () => !(await unsettled()).includes(userId));
    const { pf, po, pu } = await stored();
    expect({ pf, po, pu }).toEqual({ pf: undefined, po: undefined, pu: copied.po });
    expect(await store.zscore(`${base}media`, copied.pf)).not.toBeNull();
  });

  test('that brings a picture keeps no copy that was made before it was sent at last', async () => {
    const { store } = here.bridge;
    const key = profileKey(here.organization.base, userId);
    const url = 'https://legacy/pictures/ada.png';
    there.save(userId, { profilePictureUrl: url });
    const chunks = [Buffer.from('{}')];
    here.legacy.behaviour.override = { method: 'PUT', status: 200, headers: {}, chunks };
    let send = (): void => {};
    here.legacy.behaviour.gate = new Promise<void>((resolve) => (send = resolve));
    const sent = upload();
    await until(async () => (await unsettled()).includes(userId));
    await store.hset(key, { pf: 'AAAAAAAAAAAAAAAAAAAAAA.png', po: url, t: '' });
    send();
    await sent;
    await until(async () => !(await unsettled()).includes(userId));
    const { pf, po, pu } = await stored();
    expect({ pf, po, pu }).toEqual({ pf: undefined, po: undefined, pu: url });
  });

  test.each([
    ['accepted', { status: 200, chunks: [Buffer.from('{}')] }],
    ['answered with a redirect, so that only a read can tell', { status: 303, chunks: [] }],
  ])(
    'that brings a picture, %s, keeps no copy of the one before, though the URL is the same',
    async (_, answer) => {
      const other = await startLegacyBridge({ legacyTimeout: 600 }, {}, 'mirror');
      const { store } = other.bridge;
      const { base, id } = other.organization;
      const url = 'https://legacy/pictures/ada.png';
      const copy = 'AAAAAAAAAAAAAAAAAAAAAA.png';
      other.legacy.organization(id).save('ada', { username: 'Ada', profilePictureUrl: url });
      await store.hset(profileKey(base, 'ada'), { u: 'Ada', pf: copy, po: url, t: '' });
      other.legacy.behaviour.override = { method: 'PUT', headers: {}, ...answer };
      await upload(other, await other.player('ada'));
      await until(async () => (await store.exists(unsettledKey(base))) === 0);
      const { pf, po, pu } = await store.hgetall(profileKey(base, 'ada'));
      expect({ pf, po, pu }).toEqual({ pf: undefined, po: undefined, pu: url });
      expect(await store.zscore(`${base}media`, copy)).not.toBeNull();
      await other.close();
    },
  );

  test('that the legacy service refuses changes nothing, and leaves no mark', async () => {
    expect(await put({ username: '' })).toBe(400);
    await until(async () => !(await unsettled()).includes(userId));
    expect(await stored()).toEqual({});
  });

  test('is adopted although the legacy service’s reads lag behind its writes', async () => {
    await put({ username: 'Before' });
    await untilStored(({ u }) => u === 'Before');
    here.legacy.behaviour.lagMs = 1500;
    await put({ username: 'After' });
    here.legacy.behaviour.lagMs = 700;
    await untilStored(({ u }) => u === 'After');
  });

  test('is adopted although reads lag behind, and the answer to a first change does not say what it was', async () => {
    Object.assign(here.legacy.behaviour, { bare: true, lagMs: 700 });
    expect(await put({ username: 'First' })).toBe(200);
    await untilStored(({ u }) => u === 'First');
  });

  test('takes a name from another user here, who is repaired by an adoption of their own', async () => {
    const other = await newUser();
    await put({ username: 'Wanted' }, other.player);
    await untilStored(({ u }) => u === 'Wanted', other.userId);
    // Not through the bridge: the bridge does not know that the other user gave the name up.
    there.save(other.userId, { username: 'Gave it up' });
    expect(await put({ username: 'Wanted' })).toBe(200);
    await untilStored(({ u }) => u === 'Wanted');
    expect((await stored(other.userId))['u']).toBeUndefined();
    const { store } = here.bridge;
    const lost = () => store.hkeys(lostNamesKey(here.organization.base));
    expect(await lost()).toContain(other.userId);
    await get(other.player);
    await untilStored(({ u }) => u === 'Gave it up', other.userId);
    await until(async () => !(await lost()).includes(other.userId));
  });

  test('takes no name back and forth between two users who both have it in the legacy service', async () => {
    const other = await newUser();
    await put({ username: 'Bjo\u0308rn' }, other.player);
    await untilStored(({ u }) => u !== undefined, other.userId);
    expect(await put({ username: 'Bj\u00f6rn' })).toBe(200);
    await untilStored(({ u }) => u !== undefined);
    await get(other.player);
    const lost = () => here.bridge.store.hgetall(lostNamesKey(here.organization.base));
    await until(async () => (await lost())[other.userId] !== undefined);
    await get(other.player);
    await untilStored(({ as }) => as !== undefined, other.userId);
    expect((await stored())['u']).toBe('Bj\u00f6rn');
  });
});

test('accepted changes that cannot be adopted, since the legacy service does not show the profiles, are on record until a later adoption or a read repairs them', async () => {
  const { store, config } = here.bridge;
  const other = await newUser();
  const failures = async () => {
    const [own] = await readComparisons(store, config.keyPrefix);
    return own?.adoptionFailures ?? [];
  };
  here.legacy.behaviour.override = { headers: { 'content-type': 'text/html' }, chunks: [Buffer.from('?')] };
  expect(await put({ username: `${userId} new` })).toBe(200);
  expect(await put({ username: `${other.userId} new` }, other.player)).toBe(200);
  await until(async () => (await failures()).length === 2);
  const failed = { reason: 'profile-not-shown', at: expect.any(Number) };
  for (const id of [userId, other.userId])
    expect(await failures()).toContainEqual(expect.objectContaining({ userId: id, ...failed }));
  here.legacy.behaviour.override = undefined;

  expect(await put({ username: `${userId} newer` })).toBe(200);
  await until(async () => (await failures()).length === 1);
  expect((await stored())['u']).toBe(`${userId} newer`);

  // As after the time in which the outcome of the change may still be invisible.
  const marks = unsettledKey(here.organization.base);
  const [number] = (await store.hget(marks, other.userId))?.split(':') ?? [];
  await store.hset(marks, other.userId, `${number}:${Date.now() - 1}`);
  expect(await get(other.player)).toBe(200);
  await until(async () => (await failures()).length === 0);
  expect((await stored(other.userId))['u']).toBe(`${other.userId} new`);
});

test('a first change that the legacy service accepted and then shows no profile of is in doubt until it does', async () => {
  const { store } = here.bridge;
  const { base } = here.organization;
  here.legacy.behaviour.override = {
    status: 404,
    headers: { 'content-type': 'application/json' },
    chunks: [Buffer.from('{}')],
  };
  expect(await put({ username: `First ${userId}` })).toBe(200);
  await until(() => store.hexists(failedAdoptionsKey(base), userId));
  expect(await unsettled()).toContain(userId);
  here.legacy.behaviour.override = undefined;
  expect(await put({ avatarObjectDefinitionId: null })).toBe(200);
  await untilStored(({ u }) => u === `First ${userId}`);
  await until(async () => !(await store.hexists(failedAdoptionsKey(base), userId)));
});

test('a profile that differs in a read is repaired, and is on record as differing no more', async () => {
  await put({ username: 'Old' });
  await untilStored(({ u }) => u === 'Old');
  there.save(userId, { username: 'Changed elsewhere' });
  await get();
  await untilStored(({ u }) => u === 'Changed elsewhere');
  const { store } = here.bridge;
  await until(async () => !(await store.hexists(differingUsersKey(here.organization.base), userId)));
});

test('a read that is checked again while the user makes a change does not take its place, though reads lag behind', async () => {
  await put({ username: `Old ${userId}` });
  await untilStored(({ u }) => u === `Old ${userId}`);
  there.save(userId, { username: `Elsewhere ${userId}` });
  await sleep(1000);
  here.legacy.behaviour.lagMs = 900;
  await get();
  await until(() => reads(player) >= 3);
  await sleep(500);
  expect(await put({ username: `New ${userId}` })).toBe(200);
  await until(async () => !(await unsettled()).includes(userId));
  expect((await stored())['u']).toBe(`New ${userId}`);
});

test('of two changes at once the last one is adopted, though its answer came first and reads lag behind', async () => {
  let answer = (): void => {};
  here.legacy.behaviour.answerGate = new Promise<void>((resolve) => (answer = resolve));
  const first = put({ username: `First ${userId}` });
  await until(() => there.profiles.has(userId));
  here.legacy.behaviour.answerGate = undefined;
  await sleep(1000);
  here.legacy.behaviour.lagMs = 900;
  expect(await put({ username: `Last ${userId}` })).toBe(200);
  answer();
  expect(await first).toBe(200);
  await until(async () => !(await unsettled()).includes(userId));
  expect((await stored())['u']).toBe(`Last ${userId}`);
});

test('a number that the legacy service shows in place of a text is stored as its digits', async () => {
  const avatar = { url: 'https://legacy/1.png', datasourceId: 1, objectDefinitionId: 2 };
  there.save(userId, { username: 4711, avatar } as unknown as LegacyProfile);
  await get();
  expect(await untilStored(({ u }) => u !== undefined)).toMatchObject({ u: '4711', ar: '1\n2' });
});

test('a profile with a field that is no text is not brought over', async () => {
  await put({ username: `Kept ${userId}` });
  await untilStored(({ u }) => u !== undefined);
  const unreadable = () => here.bridge.store.hget(comparisonsKey(here.organization.base), 'unreadable');
  const before = await unreadable();
  there.save(userId, { username: { first: 'Ada' } } as unknown as LegacyProfile);
  await get();
  await until(async () => (await unreadable()) !== before);
  expect((await stored())['u']).toBe(`Kept ${userId}`);
});

test('an error that the legacy service answers with 200 unsets nothing, neither after a read nor after a change', async () => {
  const { store } = here.bridge;
  const { base } = here.organization;
  await put({ username: `Kept ${userId}` });
  await untilStored(({ u }) => u !== undefined);
  const unreadable = () => store.hget(comparisonsKey(base), 'unreadable');
  const before = await unreadable();
  here.legacy.behaviour.override = { headers: {}, chunks: [Buffer.from('{"error":"maintenance"}')] };
  await get();
  await until(async () => (await unreadable()) !== before);
  expect(await put({ avatarObjectDefinitionId: null })).toBe(200);
  await until(() => store.hexists(failedAdoptionsKey(base), userId));
  expect((await stored())['u']).toBe(`Kept ${userId}`);
});

describe('the mark that a killed instance leaves of a change', () => {
  const mark = async (due: number): Promise<void> => {
    await put({ username: `Marked ${userId}` });
    await untilStored(({ u }) => u !== undefined);
    await until(async () => !(await unsettled()).includes(userId));
    await here.bridge.store.hset(unsettledKey(here.organization.base), userId, `1:${due}`);
  };

  test('is removed by a read that matches, once the outcome of the change must be visible', async () => {
    await mark(Date.now() - 1);
    expect(await get()).toBe(200);
    await until(async () => !(await unsettled()).includes(userId));
  });

  test('does not hold up a later change of the user', async () => {
    await mark(Date.now() + 60_000);
    const before = reads(player);
    expect(await put({ username: `Later ${userId}` })).toBe(200);
    await untilStored(({ u }) => u === `Later ${userId}`);
    expect(reads(player)).toBe(before + 1);
  });

  test('outlives a read that matches while the change may be in flight', async () => {
    await mark(Date.now() + 60_000);
    const matches = () => here.bridge.store.hget(comparisonsKey(here.organization.base), 'same');
    const before = await matches();
    expect(await get()).toBe(200);
    await until(async () => (await matches()) !== before);
    expect(await unsettled()).toContain(userId);
  });
});

test('an organization is recorded as forwarded before each of its changes is: Redis may have lost the record', async () => {
  const other = await startLegacyBridge({}, {}, 'mirror');
  const apiKey = await other.player('ada');
  const { store, config } = other.bridge;
  const isUnsettled = async () => (await store.exists(unsettledKey(other.organization.base))) === 1;
  const forwarded = forwardedOrganizationsKey(config.keyPrefix);
  const known: string[] = [];
  for (const username of ['Ada', 'Eve']) {
    await store.unlink(forwarded);
    let answer: (() => void) | undefined;
    other.legacy.behaviour.gate = new Promise<void>((resolve) => (answer = resolve));
    const change = other.send(apiKey, 'PUT', '/api/profile/', { body: JSON.stringify({ username }) });
    await until(isUnsettled);
    known.push(...(await store.smembers(forwarded)));
    answer?.();
    await change;
    await until(async () => !(await isUnsettled()));
  }
  await other.close();
  expect(known).toEqual([other.organization.id, other.organization.id]);
});

test('an organization that a client made up is not recorded as forwarded', async () => {
  const { url, store, config } = here.bridge;
  const headers = { 'x-api-key': 'wrong', 'x-platform-organization-id': 'made-up' };
  const response = await fetch(`${url}/api/profile/`, { method: 'PUT', headers, body: '{}' });
  expect(response.status).toBe(401);
  expect(await store.sismember(forwardedOrganizationsKey(config.keyPrefix), 'made-up')).toBe(0);
});

describe('a change whose response is lost', () => {
  let store: RedisClient;
  beforeAll(async () => {
    store = await openTestStore();
  });
  afterAll(() => closeRedis(store));
  let other: LegacyBridge;
  beforeEach(async () => {
    // Its outcome is unknown for twice as long, which is well below how long a bridge that stops waits for it.
    other = await startLegacyBridge({ legacyTimeout: 600 }, {}, 'mirror');
    const apiKey = await other.player('ada');
    other.legacy.behaviour.reset = 'after';
    const body = JSON.stringify({ username: 'Ada' });
    expect((await other.send(apiKey, 'PUT', '/api/profile/', { body })).status).toBeGreaterThan(500);
    other.legacy.behaviour.reset = undefined;
  });
  const adopted = async () => store.hget(profileKey(other.organization.base, 'ada'), 'u');
  const marks = async () => store.hkeys(unsettledKey(other.organization.base));

  test('is adopted once its outcome must be visible', async () => {
    expect(await marks()).toEqual(['ada']);
    await until(async () => (await marks()).length === 0);
    expect(await adopted()).toBe('Ada');
    await other.close();
  });

  test('is waited for by a bridge that stops, and adopted', async () => {
    await other.close();
    expect([await adopted(), await marks()]).toEqual(['Ada', []]);
  });
});

test('a change whose response is lost stays in doubt while the legacy service shows no profile of a user who has one', async () => {
  const other = await startLegacyBridge({ legacyTimeout: 600 }, {}, 'mirror');
  const { store } = other.bridge;
  const { base } = other.organization;
  const apiKey = await other.player('ada');
  const name = () => store.hget(profileKey(base, 'ada'), 'u');
  const change = async (username: string): Promise<unknown> =>
    await other.send(apiKey, 'PUT', '/api/profile/', { body: JSON.stringify({ username }) });
  await change('Ada');
  await until(async () => (await name()) === 'Ada');
  const { behaviour, received } = other.legacy;
  const readsSoFar = () => received.filter(({ method }) => method === 'GET').length;
  const before = readsSoFar();
  behaviour.reset = 'after';
  behaviour.override = { status: 404, headers: {}, chunks: [Buffer.from('{"error":"no route"}')] };
  await change('Eve');
  behaviour.reset = undefined;
  // Two reads that agree, and one more: it does not rest at what they say.
  await until(() => readsSoFar() > before + 2);
  expect(await store.hexists(unsettledKey(base), 'ada')).toBe(1);
  behaviour.override = undefined;
  await until(async () => (await name()) === 'Eve');
  await until(async () => (await store.exists(unsettledKey(base))) === 0);
  await other.close();
});

test('changes of one user that the legacy service fails to answer are adopted together', async () => {
  const other = await startLegacyBridge({ legacyTimeout: 300 }, {}, 'mirror');
  const apiKey = await other.player('ada');
  const { behaviour, received } = other.legacy;
  behaviour.failWith = ({ method }) => (method === 'PUT' ? 500 : undefined);
  other.legacy.organization(other.organization.id).save('ada', { username: 'Ada' });
  const body = JSON.stringify({ username: 'Ada' });
  await Promise.all(
    Array.from({ length: 30 }, async () => await other.send(apiKey, 'PUT', '/api/profile/', { body })),
  );
  const { store } = other.bridge;
  await until(async () => (await store.exists(unsettledKey(other.organization.base))) === 0);
  expect(await store.hget(profileKey(other.organization.base, 'ada'), 'u')).toBe('Ada');
  // Two adoptions, more where the changes come in slowly. One for each would make sixty reads, or more.
  expect(received.filter(({ method }) => method === 'GET').length).toBeLessThan(30);
  await other.close();
});

test('a change that is answered with a redirect may have been made, and is adopted then', async () => {
  const other = await startLegacyBridge({ legacyTimeout: 1000 }, {}, 'mirror');
  const apiKey = await other.player('ada');
  const headers = { 'x-api-key': apiKey, 'x-platform-organization-id': other.organization.id };
  other.legacy.behaviour.override = {
    method: 'PUT',
    status: 303,
    headers: { location: '/api/profile/' },
    chunks: [],
  };
  other.legacy.organization(other.organization.id).save('ada', { username: 'Ada' });
  const url = `${other.bridge.url}/api/profile/`;
  const body = JSON.stringify({ username: 'Ada' });
  expect((await fetch(url, { method: 'PUT', headers, body, redirect: 'manual' })).status).toBe(303);
  const { store } = other.bridge;
  await until(async () => (await store.exists(unsettledKey(other.organization.base))) === 0);
  const adopted = await store.hget(profileKey(other.organization.base, 'ada'), 'u');
  await other.close();
  expect(adopted).toBe('Ada');
});

test('a change that a withdrawn switch has overtaken is adopted in the new epoch', async () => {
  const { base } = here.organization;
  let answer: (() => void) | undefined;
  here.legacy.behaviour.gate = new Promise<void>((resolve) => (answer = resolve));
  const change = put({ username: `late-${userId}` });
  await until(async () => (await unsettled()).includes(userId));
  // As for a bridge that was paused, and assumed to have stopped.
  await here.bridge.store.hset(settingsKey(base), 'epoch', 2);
  await here.bridge.store.hset(cutoverKey(here.bridge.config.keyPrefix), 'epoch', 2);
  answer?.();
  here.legacy.behaviour.gate = undefined;
  expect(await change).toBe(200);
  await until(async () => !(await unsettled()).includes(userId));
  expect((await stored())['u']).toBe(`late-${userId}`);
});

test('a profile that only Redis has is never deleted', async () => {
  await setWallet(here.bridge.store, here.organization.base, userId, '0x2', 'w');
  expect(await get()).toBe(404);
  const { store } = here.bridge;
  await until(() => store.hexists(differingUsersKey(here.organization.base), userId));
  expect(await stored()).toMatchObject({ w: '0x2' });
});

describe('a denylist change', () => {
  test('is applied as the legacy service answered: bans with renames, partial success, removal, overwrite', async () => {
    await put({ username: 'Rude' });
    await untilStored(({ u }) => u === 'Rude');
    expect(await denylist('POST', 'deny', { Rude: 'Polite', Unused: 'x' })).toBe(204);
    await until(async () => (await deniedHere()).join() === 'Rude,Unused');
    expect((await stored())['u']).toBe('Polite');
    const [entry] = await here.bridge.store.xrange(auditKey(here.organization.base), '-', '+');
    expect(entry?.[1]).toEqual(['op', 'ban', 'key', expect.stringMatching(/^k_/), 'username', 'Rude']);
    expect(await denylist('POST', 'deny', { Polite: 'Rude', Third: 'y' })).toBe(200);
    await until(async () => (await deniedHere()).join() === 'Rude,Third,Unused');
    expect((await stored())['u']).toBe('Polite');
    expect(await denylist('DELETE', 'deny', ['Polite', 'Third'])).toBe(200);
    await until(async () => (await deniedHere()).join() === 'Rude,Unused');
    expect(await denylist('PUT', 'denylist', ['Polite'])).toBe(409);
    expect(await denylist('PUT', 'denylist', ['One', 'Two'])).toBe(204);
    await until(async () => (await deniedHere()).join() === 'One,Two');
    await until(async () => !(await unsettled()).includes(''));
  });

  test('is applied in the order of the legacy service if there are many at once', async () => {
    const names = Array.from({ length: 12 }, (_, n) => `many-${n}`);
    const statuses = await Promise.all(names.map((name) => denylist('PUT', 'denylist', [name])));
    expect(new Set(statuses)).toEqual(new Set([204]));
    const wanted = [...there.denied].join();
    await until(async () => (await deniedHere()).join() === wanted);
    await until(async () => !(await unsettled()).includes(''));
    expect((await deniedHere()).join()).toBe([...there.denied].join());
  });

  describe('that overwrites a long list', () => {
    const names = Array.from({ length: 6000 }, (_, n) => `Name${n}`);

    const removeStage = async (base: string) =>
      await here.bridge.store.multi().del(stageOwnerKey(base)).unlink(stageKey(base)).exec();

    /** Sends it for an organization of its own; does something once a part is staged, until its change has ended. */
    const overwriteWhile = async (happens: (base: string) => Promise<unknown>): Promise<string> => {
      const { store } = here.bridge;
      const { id, base, newKey } = await here.bridge.newOrganization();
      const { apiKey } = await newKey({ role: 'admin' });
      here.legacy.addKey(apiKey, { organization: id, role: 'admin' });
      const headers = { 'x-platform-organization-id': id, 'content-type': 'application/json' };
      const url = '/api/profile/username/denylist/';
      const sent = here.send(apiKey, 'PUT', url, { body: JSON.stringify(names), headers });
      await until(async () => (await store.hlen(stageKey(base))) > 0);
      await happens(base);
      expect((await sent).status).toBe(204);
      await until(async () => (await store.exists(unsettledKey(base))) === 0);
      return base;
    };

    test('is applied as names are compared by then if that changes meanwhile', async () => {
      const { store } = here.bridge;
      const base = await overwriteWhile(async (of) => {
        expect(await changeComparison(store, of, 'case-insensitive')).toMatchObject({ kind: 'rebuilt' });
      });
      const denied = await store.hgetall(denylistKey(base, '1'));
      expect(names.filter((name) => denied[name.toLowerCase()] !== name)).toEqual([]);
      expect(Object.keys(denied)).toHaveLength(names.length);
    });

    test('is applied as a whole if its stage is removed meanwhile', async () => {
      const { store } = here.bridge;
      const base = await overwriteWhile(removeStage);
      expect(await store.hlen(denylistKey(base, '0'))).toBe(names.length);
      expect(await store.exists(gapsKey(base), stageKey(base), stageOwnerKey(base))).toBe(0);
    });

    test('leaves a gap on record if its stage is removed again and again', async () => {
      const { store } = here.bridge;
      const base = await overwriteWhile(async (of) => {
        await until(async () => {
          await removeStage(of);
          return (await store.exists(unsettledKey(of))) === 0;
        });
      });
      expect(await store.hkeys(gapsKey(base))).toEqual(['denylist-change-interrupted']);
      expect(await store.exists(denylistKey(base, '0'))).toBe(0);
    });
  });

  test('ends although its client does not read the response', async () => {
    const spaces = Array.from({ length: 24 }, () => Buffer.alloc(1024 * 1024, ' '));
    const headers = { 'content-type': 'application/json' };
    const answer = Buffer.from('{"usernamesDeleted":[],"usernamesInUse":[]}');
    here.legacy.behaviour.override = { method: 'DELETE', headers, chunks: [...spaces, answer] };
    const body = '["Unused"]';
    const socket = connect(Number(new URL(here.bridge.url).port), '127.0.0.1');
    socket.pause();
    const fields = { 'x-api-key': admin, 'x-platform-organization-id': here.organization.id, ...headers };
    const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    const sentAt = performance.now();
    socket.write(
      `DELETE /api/profile/username/deny/ HTTP/1.1\r\nHost: x\r\n${head.join('')}Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    await until(async () => (await unsettled()).includes(''));
    await until(async () => !(await unsettled()).includes(''));
    // Its connection is closed after a minute.
    expect(performance.now() - sentAt).toBeLessThan(50_000);
    socket.destroy();
  });

  test('with a key that Redis does not have waits for no other change, and holds up none', async () => {
    const { store } = here.bridge;
    const { id, base } = await here.bridge.newOrganization();
    here.legacy.addKey('admin-only-there', { organization: id, role: 'admin' });
    const send = async (apiKey: string): Promise<number> => {
      const headers = { 'x-platform-organization-id': id, 'content-type': 'application/json' };
      const url = '/api/profile/username/denylist/';
      return (await here.send(apiKey, 'PUT', url, { body: '["Rude"]', headers })).status;
    };
    await store.set(denylistChangeKey(base), 'another change', 'PX', 60_000);
    expect(await send('made-up')).toBe(401);
    expect(await store.exists(gapsKey(base))).toBe(0);
    // What the legacy service accepts is on record: the key has to be imported, and everything verified.
    expect(await send('admin-only-there')).toBe(204);
    await until(() => store.hexists(gapsKey(base), 'unknown-key'));
  });

  test('by a player, whom the legacy service refuses, holds up no other change', async () => {
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const isPlayers = (key: unknown): boolean => key === player;
    here.legacy.behaviour.gate = ({ headers }) => (isPlayers(headers['x-api-key']) ? gate : undefined);
    const headers = { 'content-type': 'application/json' };
    const refused = here.send(player, 'POST', '/api/profile/username/deny/', { body: '{"a":"b"}', headers });
    await until(() => here.legacy.received.some((one) => isPlayers(one.headers['x-api-key'])));
    const status = await denylist('PUT', 'denylist', ['while it waits']);
    here.legacy.behaviour.gate = undefined;
    open();
    expect({ status, refused: (await refused).status }).toEqual({ status: 204, refused: 403 });
  });

  test.each(['["In use"]', '{"status":"refused","names":["In use"]}'])(
    'that is answered 200 with names in use, %s, an overwrite, is not applied',
    async (answer) => {
      here.legacy.behaviour.override = { method: 'PUT', headers: {}, chunks: [Buffer.from(answer)] };
      expect(await denylist('PUT', 'denylist', ['In use', 'Other'])).toBe(200);
      await until(async () => !(await unsettled()).includes(''));
      expect(await deniedHere()).not.toContain('Other');
      const gaps = await here.bridge.store.hkeys(gapsKey(here.organization.base));
      expect(gaps).not.toContain('denylist-response-unreadable');
    },
  );

  test.each(['\n', '{}'])(
    'that is answered 200 with %j, which names none that were not added, is applied',
    async (answer) => {
      here.legacy.behaviour.override = { method: 'POST', headers: {}, chunks: [Buffer.from(answer)] };
      const name = `added after ${JSON.stringify(answer)}`;
      expect(await denylist('POST', 'deny', { [name]: 'x' })).toBe(200);
      await until(async () => (await deniedHere()).includes(name));
    },
  );

  test.each([
    ['ban', 'POST', 'deny', { unread: 'x' }],
    ['removal', 'DELETE', 'deny', ['unread']],
    ['overwrite', 'PUT', 'denylist', ['unread']],
  ])(
    'of which the response does not say what was done, a %s, leaves a gap on record',
    async (_, method, path, body) => {
      const { store } = here.bridge;
      const { base } = here.organization;
      await store.del(gapsKey(base));
      here.legacy.behaviour.failWith = 200;
      expect(await denylist(method, path, body)).toBe(200);
      await until(() => store.hexists(gapsKey(base), 'denylist-response-unreadable'));
      expect(await deniedHere()).not.toContain('unread');
    },
  );

  test('is applied where the legacy service takes a removal that the contract does not', async () => {
    expect(await denylist('POST', 'deny', { 'To go': 'x' })).toBe(204);
    await until(async () => (await deniedHere()).includes('To go'));
    const answer = '{"usernamesDeleted":["To go"],"usernamesInUse":[]}';
    here.legacy.behaviour.override = { method: 'DELETE', headers: {}, chunks: [Buffer.from(answer)] };
    expect(await denylist('DELETE', 'deny', ['To go', ''])).toBe(200);
    await until(async () => !(await deniedHere()).includes('To go'));
  });

  test('is applied without a name that the legacy service lists as not added in another spelling', async () => {
    here.legacy.behaviour.override = { method: 'POST', headers: {}, chunks: [Buffer.from('["Bj\u00f6rn"]')] };
    expect(await denylist('POST', 'deny', { 'Bjo\u0308rn': 'x', Added: 'y' })).toBe(200);
    await until(async () => (await deniedHere()).includes('Added'));
    expect(await deniedHere()).not.toContain('Bj\u00f6rn');
  });

  test.each([
    ['ban', 'POST', 'deny', { asked: 'x' }, '["other"]'],
    ['removal', 'DELETE', 'deny', ['asked'], '{"usernamesDeleted":["other"],"usernamesInUse":[]}'],
  ])(
    'in whose answer a name is listed that was not asked for, a %s, is not applied, and leaves a gap on record',
    async (_, method, path, body, answer) => {
      const { store } = here.bridge;
      const { base } = here.organization;
      await store.del(gapsKey(base));
      here.legacy.behaviour.override = { method, headers: {}, chunks: [Buffer.from(answer)] };
      expect(await denylist(method, path, body)).toBe(200);
      await until(() => store.hexists(gapsKey(base), 'denylist-response-unreadable'));
      expect(await deniedHere()).not.toContain('asked');
    },
  );

  test.each(['{"added":["one"],"refused":["two"]}', '{"added":["one"],"errors":[{"username":"two"}]}'])(
    'whose response has several lists, neither of which is known to be of names not added, %s, leaves a gap on record',
    async (answer) => {
      const { store } = here.bridge;
      const { base } = here.organization;
      await store.del(gapsKey(base));
      here.legacy.behaviour.override = { method: 'POST', headers: {}, chunks: [Buffer.from(answer)] };
      expect(await denylist('POST', 'deny', { one: 'x', two: 'y' })).toBe(200);
      await until(() => store.hexists(gapsKey(base), 'denylist-response-unreadable'));
      expect(await deniedHere()).not.toContain('two');
    },
  );

  test('that has lost its turn is not applied, and leaves a gap on record', async () => {
    const { store } = here.bridge;
    const { base } = here.organization;
    let open = (): void => {};
    here.legacy.behaviour.answerGate = new Promise<void>((resolve) => (open = resolve));
    const banned = denylist('POST', 'deny', { late: 'x' });
    await until(() => there.denied.has('late'));
    await store.set(denylistChangeKey(base), 'another change', 'PX', 60_000);
    here.legacy.behaviour.answerGate = undefined;
    open();
    expect(await banned).toBe(204);
    await until(() => store.hexists(gapsKey(base), 'denylist-change-interrupted'));
    expect(await deniedHere()).not.toContain('late');
    await store.del(denylistChangeKey(base));
  });

  test('whose outcome is unknown leaves a gap on record', async () => {
    here.legacy.behaviour.failWith = 503;
    expect(await denylist('PUT', 'denylist', ['doubt'])).toBe(503);
    const gaps = () => here.bridge.store.hgetall(gapsKey(here.organization.base));
    await until(async () => (await gaps())['denylist-outcome-unknown'] !== undefined);
  });
});

test('an accepted change with a key that Redis does not have leaves a gap on record', async () => {
  here.legacy.addKey('only-there', { organization: here.organization.id, role: 'player', user: userId });
  expect(await put({ username: 'Unknown' }, 'only-there')).toBe(200);
  const gaps = () => here.bridge.store.hgetall(gapsKey(here.organization.base));
  await until(async () => (await gaps())['unknown-key'] !== undefined);
  expect(await gaps()).not.toHaveProperty('unmarked-upload');
  await upload(here, 'only-there');
  await until(async () => (await gaps())['unmarked-upload'] !== undefined);
});

test('changes for an organization that exists nowhere leave nothing behind', async () => {
  const { store, config } = here.bridge;
  const send = async (organization: string, method: string, path: string, body: string): Promise<number> => {
    const headers = { 'x-platform-organization-id': organization, 'content-type': 'application/json' };
    return (await here.send('made-up', method, path, { body, headers })).status;
  };
  for (const failWith of [undefined, 503]) {
    here.legacy.behaviour.failWith = failWith;
    const status = failWith ?? 401;
    expect(await send('nowhere', 'PUT', '/api/profile/', '{"username":"Ada"}')).toBe(status);
    expect(await send('nowhere', 'POST', '/api/profile/username/deny/', '{"a":"b"}')).toBe(status);
    expect(await send('nowhere', 'PUT', '/api/profile/username/denylist/', '["a"]')).toBe(status);
  }
  // Of an organization that exists it is on record, in the same turn or a later one.
  const existing = await here.bridge.newOrganization();
  await send(existing.id, 'PUT', '/api/profile/', '{"username":"Ada"}');
  await until(() => store.hexists(gapsKey(existing.base), 'unknown-key'));
  expect(await store.keys(`${organizationBase(config.keyPrefix, 'nowhere')}*`)).toEqual([]);
  expect(await store.smembers(forwardedOrganizationsKey(config.keyPrefix))).not.toContain('nowhere');
});

test('a change that did not reach the legacy service, since there was no connection, leaves no doubt', async () => {
  const legacyBaseUrl = `http://127.0.0.1:${await unusedPort()}`;
  const alone = await startLegacyBridge({ legacyBaseUrl }, {}, 'mirror');
  try {
    const { store } = alone.bridge;
    const { base } = alone.organization;
    for (const [apiKey, method, path, body] of [
      [await alone.player('ada'), 'PUT', '/api/profile/', '{"username":"Ada"}'],
      [await alone.admin(), 'POST', '/api/profile/username/deny/', '{"bad":"good"}'],
    ] as const) {
      const headers = { 'content-type': 'application/json' };
      const response = await alone.send(apiKey, method, path, { body, headers });
      expect(response.status).toBe(502);
      expect(await response.json()).toMatchObject({
        detail: expect.stringMatching(/ This change was not made\.$/),
      });
      await until(async () => (await store.exists(denylistChangeKey(base))) === 0);
      expect(await store.hgetall(gapsKey(base))).toEqual({});
      await until(async () => (await store.exists(unsettledKey(base))) === 0);
    }
  } finally {
    await alone.close();
  }
});
