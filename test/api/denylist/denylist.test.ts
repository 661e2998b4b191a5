import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startBridge, type TestBridge, type TestOrganization } from '../../support/bridge.ts';
import type { Client } from '../../support/requests/client.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';

const stageOpen = script<(string | number)[], unknown>('denylist/stage_open');
const stageAdd = script<(string | number)[], unknown>('denylist/stage_add');

const deny = '/api/profile/username/deny/';
const denylist = '/api/profile/username/denylist/';

let bridge: TestBridge;
beforeAll(async () => {
  bridge = await startBridge();
});
afterAll(async () => {
  await bridge.close();
});

/** An organization with an admin and users who have these names, by user id. */
async function scene(names: Record<string, string> = {}, settings = {}) {
  const organization = await bridge.newOrganization(settings);
  const players: Record<string, Client> = {};
  for (const [user, username] of Object.entries(names)) {
    const player = await organization.player(user);
    await player.request('PUT', '/api/profile/', { json: { username } });
    players[user] = player;
  }
  return { organization, players, admin: await organization.admin() };
}

async function nameOf(player: Client | undefined): Promise<unknown> {
  const answer = await player?.request('GET', '/api/profile/');
  return (answer?.body as { username?: string } | undefined)?.username;
}

async function denied(organization: TestOrganization): Promise<string[]> {
  return (await bridge.store.hkeys(`${organization.base}d0`)).sort();
}

describe('ban and replace', () => {
  test('denies names, renames their users, and answers 204', async () => {
    const { organization, players, admin } = await scene({ u1: 'rude' });
    const answer = await admin.request('POST', deny, { json: { rude: 'player-1', spare: 'unused' } });
    expect([answer.status, answer.text]).toEqual([204, '']);
    expect(await nameOf(players['u1'])).toBe('player-1');
    expect(await denied(organization)).toEqual(['rude', 'spare']);
    const again = await players['u1']?.request('PUT', '/api/profile/', { json: { username: 'rude' } });
    expect([again?.status, again?.body]).toMatchObject([422, { code: 'username-denied' }]);
  });

  test('renames the user of a name that is denied already, as after a migration, so that 4.5.3 holds', async () => {
    const { organization, players, admin } = await scene({ u1: 'bad', u2: 'taken' });
    await bridge.store.hset(`${organization.base}d0`, 'bad', '', 'unused', '');
    const ban = (json: object) => admin.request('POST', deny, { json });
    const overwrite = () => admin.request('PUT', denylist, { json: ['bad'] });
    expect((await overwrite()).status).toBe(409);
    // Skipped (4.3.3): it is on the list.
    expect((await ban({ bad: 'taken', unused: 'taken' })).status).toBe(204);
    expect(await nameOf(players['u1'])).toBe('bad');
    expect((await ban({ bad: 'good' })).status).toBe(204);
    expect(await nameOf(players['u1'])).toBe('good');
    expect(await denied(organization)).toEqual(['bad', 'unused']);
    expect((await overwrite()).status).toBe(204);
  });

  test('neither banned nor replacement names need to follow the settings', async () => {
    const { organization, players, admin } = await scene({ u1: 'abc' }, { maxLength: 3 });
    await admin.request('POST', deny, { json: { abc: 'much longer!', 'also too long': 'x' } });
    expect(await nameOf(players['u1'])).toBe('much longer!');
    expect(await denied(organization)).toEqual(['abc', 'also too long']);
  });

  test('is checked against the state after the request, whatever the order of its properties', async () => {
    for (const json of [
      { a: 'b', b: 'c' },
      { b: 'c', a: 'b' },
    ]) {
      const { organization, players, admin } = await scene({ u1: 'a', u2: 'b' });
      const answer = await admin.request('POST', deny, { json });
      expect([answer.status, answer.body]).toEqual([
        200,
        {
          usernamesNotAdded: ['a'],
          failures: [{ username: 'a', replacement: 'b', reason: 'replacement-denied' }],
        },
      ]);
      expect([await nameOf(players['u1']), await nameOf(players['u2'])]).toEqual(['a', 'c']);
      expect(await denied(organization)).toEqual(['b']);
    }
  });

  test('checks a replacement that could not be denied against the resulting state', async () => {
    for (const json of [
      { a: 'b', b: 'c' },
      { b: 'c', a: 'b' },
    ]) {
      const { organization, admin } = await scene({ u1: 'a', u2: 'b', u3: 'c' });
      const { body } = await admin.request('POST', deny, { json });
      const { failures } = body as { failures: { username: string; reason: string }[] };
      expect(new Map(failures.map(({ username, reason }) => [username, reason]))).toEqual(
        new Map([
          ['a', 'replacement-in-use'],
          ['b', 'replacement-in-use'],
        ]),
      );
      expect(await denied(organization)).toEqual([]);
    }
  });

  test('denies and renames both or neither: with a replacement in use, the name is not denied', async () => {
    const { organization, players, admin } = await scene({ u1: 'a', u2: 'b' });
    const answer = await admin.request('POST', deny, { json: { a: 'b', free: 'whatever' } });
    expect(answer.body).toMatchObject({ failures: [{ username: 'a', reason: 'replacement-in-use' }] });
    expect(await nameOf(players['u1'])).toBe('a');
    expect(await denied(organization)).toEqual(['free']);
  });

  test('does not list a name as not added that another spelling of it in the same request has added', async () => {
    for (const json of [
      { ada: 'taken', ADA: 'free' },
      { ada: 'taken', ADA: 'free', b: 'ada' },
    ]) {
      const { organization, players, admin } = await scene(
        { u1: 'Ada', u2: 'taken', u3: 'b' },
        { comparison: 'case-insensitive' },
      );
      const answer = await admin.request('POST', deny, { json });
      expect(await nameOf(players['u1'])).toBe('free');
      expect(await denied(organization)).toEqual(['ada']);
      if ('b' in json) {
        const failures = [{ username: 'b', replacement: 'ada', reason: 'replacement-denied' }];
        expect(answer.body).toEqual({ usernamesNotAdded: ['b'], failures });
      } else {
        expect([answer.status, answer.text]).toEqual([204, '']);
      }
    }
  });

  test('checks only replacements that are needed', async () => {
    const { admin } = await scene({ u1: 'taken' });
    const answer = await admin.request('POST', deny, { json: { unused: 'taken', other: 'unused' } });
    expect(answer.status).toBe(204);
  });

  test('of two bans that share a replacement, the first property wins, even if names look like numbers', async () => {
    const { players, admin } = await scene({ u1: 'zed', u2: '123' });
    const answer = await admin.request('POST', deny, { body: '{"zed": "x", "123": "x"}' });
    expect(answer.body).toMatchObject({ failures: [{ username: '123', reason: 'replacement-in-use' }] });
    expect([await nameOf(players['u1']), await nameOf(players['u2'])]).toEqual(['x', '123']);
  });

  test('changes nothing and answers 204 when sent again', async () => {
    const { players, admin } = await scene({ u1: 'rude' });
    await admin.request('POST', deny, { json: { rude: 'nice' } });
    expect((await admin.request('POST', deny, { json: { rude: 'other' } })).status).toBe(204);
    expect(await nameOf(players['u1'])).toBe('nice');
    expect((await admin.request('POST', deny, { json: {} })).status).toBe(204);
  });

  test('`__proto__`, `constructor` and escaped names are names like any other', async () => {
    const { organization, players, admin } = await scene({ u1: '__proto__', u2: 'a"b\\' });
    const body = '{"__proto__":"p", "constructor":"c", "a\\"b\\\\":"\\u0071", "\\u00e9": "x"}';
    expect((await admin.request('POST', deny, { body })).status).toBe(204);
    expect([await nameOf(players['u1']), await nameOf(players['u2'])]).toEqual(['p', 'q']);
    expect(await denied(organization)).toEqual(['__proto__', 'a"b\\', 'constructor', 'é']);
  });

  test('a property given twice counts once, by its last value, and the first value has no effect', async () => {
    const { organization, players, admin } = await scene({ u1: 'rude' });
    const body = '{"rude":{"":"\\u0000","a":"b"},"c":"d","rude":"player-1"}';
    expect((await admin.request('POST', deny, { body })).status).toBe(204);
    expect(await nameOf(players['u1'])).toBe('player-1');
    expect(await denied(organization)).toEqual(['c', 'rude']);
  });

  test.each([
    '[]',
    '["a","b"]',
    '"a"',
    'null',
    '7',
    '{"a":["b"]}',
    '{"a":{"b":"c"}}',
    '{"a":null,"b":"c"}',
    '{"a":""}',
  ])('%s is not an object of names: 400, and nothing is banned', async (body) => {
    const { organization, admin } = await scene();
    const answer = await admin.request('POST', deny, { body });
    expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid-body' }]);
    expect(await denied(organization)).toEqual([]);
  });

  test('each ban and each forced rename is an entry of the audit trail', async () => {
    const { organization, admin } = await scene({ u1: 'rude' });
    await admin.request('POST', deny, { json: { rude: 'nice' } });
    const entries = await bridge.store.xrange(`${organization.base}audit`, '-', '+');
    const names = entries
      .map(([, fields]) => fields.filter((_, index) => index !== 3))
      .filter(([, operation]) => operation === 'ban' || operation === 'rename');
    expect(names).toEqual([
      ['op', 'ban', 'key', 'username', 'rude'],
      ['op', 'rename', 'key', 'from', 'rude', 'to', 'nice', 'user', 'u1'],
    ]);
  });
});

describe('delete from the denylist', () => {
  test('lists what was removed and what is in use; any other name is in neither list', async () => {
    const { organization, admin } = await scene({ u1: 'used' });
    await admin.request('PUT', denylist, { json: ['b', 'a', 'c'] });
    await bridge.store.hset(`${organization.base}d0`, 'used', '');
    const answer = await admin.request('DELETE', deny, { json: ['used', 'a', 'nobody', 'b', 'a'] });
    expect([answer.status, answer.body]).toEqual([
      200,
      { usernamesDeleted: ['a', 'b'], usernamesInUse: ['used'] },
    ]);
    expect(await denied(organization)).toEqual(['c', 'used']);
  });

  test('answers in the spelling of the request', async () => {
    const { admin } = await scene({}, { comparison: 'case-insensitive' });
    await admin.request('POST', deny, { json: { Rude: 'x' } });
    expect((await admin.request('DELETE', deny, { json: ['RUDE', 'rude'] })).body).toEqual({
      usernamesDeleted: ['RUDE'],
      usernamesInUse: [],
    });
  });
});

describe('overwrite the denylist', () => {
  test('replaces the whole list, and `[]` empties it', async () => {
    const { organization, admin } = await scene();
    await admin.request('PUT', denylist, { json: ['a', 'b'] });
    expect((await admin.request('PUT', denylist, { json: ['c', 'c'] })).status).toBe(204);
    expect(await denied(organization)).toEqual(['c']);
    expect((await admin.request('PUT', denylist, { json: [] })).status).toBe(204);
    expect(await denied(organization)).toEqual([]);
  });

  test('is refused if names are in use, lists them, and leaves the denylist as it was', async () => {
    const { organization, players, admin } = await scene({ u1: 'one', u2: 'two' });
    await admin.request('PUT', denylist, { json: ['old'] });
    const answer = await admin.request('PUT', denylist, { json: ['new', 'two', 'one', 'two'] });
    expect([answer.status, answer.body]).toMatchObject([
      409,
      { code: 'usernames-in-use', usernamesInUse: ['two', 'one'] },
    ]);
    expect(await denied(organization)).toEqual(['old']);
    // The stage is gone too: its names can be claimed at once.
    const claim = await players['u1']?.request('PUT', '/api/profile/', { json: { username: 'new' } });
    expect(claim?.status).toBe(200);
  });

  test('lets no claim slip in between check and swap, and shows no client half a list', async () => {
    const { organization, admin } = await scene();
    const list = Array.from({ length: 3000 }, (_, index) => `name-${index}`);
    const claimers = await Promise.all([0, 1499, 2999].map((index) => organization.player(`u${index}`)));
    const overwrite = admin.request('PUT', denylist, { json: list });
    const claims = await Promise.all(
      claimers.map((player, index) =>
        player.request('PUT', '/api/profile/', { json: { username: `name-${[0, 1499, 2999][index]}` } }),
      ),
    );
    const { status } = await overwrite;
    const claimed = claims.filter((claim) => claim.status === 200).length;
    // Either the claims came first and the list was refused, or the list holds and no claim of it does.
    expect([status, claimed]).toEqual(claimed === 0 ? [204, 0] : [409, claimed]);
    expect((await denied(organization)).length).toBe(status === 204 ? 3000 : 0);
  });

  test('leaves one whole list if two run at the same time', async () => {
    const { organization, admin } = await scene();
    const lists = ['x', 'y'].map((letter) => Array.from({ length: 1200 }, (_, i) => `${letter}${i}`));
    const answers = await Promise.all(lists.map((json) => admin.request('PUT', denylist, { json })));
    expect(answers.map(({ status }) => status)).toEqual([204, 204]);
    const names = await denied(organization);
    expect(names).toHaveLength(1200);
    expect(new Set(names.map((name) => name[0])).size).toBe(1);
  });

  test('lets its names be claimed once the lease of a crashed overwrite is over', async () => {
    const { organization, admin } = await scene();
    await stageOpen(bridge.store, organization.base, 0, '0', 'dead', 300);
    await stageAdd(bridge.store, organization.base, 0, '0', 'dead', 300, 'ada', 'ada');
    const player = await organization.player('u1');
    expect((await player.request('PUT', '/api/profile/', { json: { username: 'ada' } })).status).toBe(200);
    expect((await admin.request('PUT', denylist, { json: ['x'] })).status).toBe(204);
  });
});

describe('bad input to the denylist changes nothing', () => {
  test.each<[string, string, string, number, string]>([
    ['POST', deny, '["a"]', 400, 'invalid-body'],
    ['POST', deny, '{"a":1}', 400, 'invalid-body'],
    ['POST', deny, '{"a":""}', 400, 'invalid-body'],
    ['POST', deny, '{"":"a"}', 400, 'invalid-body'],
    ['POST', deny, '{"a":"x\\u0007"}', 400, 'invalid-body'],
    ['POST', deny, '{"\\udfff":"x"}', 400, 'invalid-body'],
    ['DELETE', deny, '{}', 400, 'invalid-body'],
    ['DELETE', deny, '[null]', 400, 'invalid-body'],
    ['PUT', denylist, '{"a":"b"}', 400, 'invalid-body'],
    ['PUT', denylist, '["a",["b"]]', 400, 'invalid-body'],
    ['PUT', denylist, '["a"', 400, 'invalid-json'],
    ['PUT', denylist, `["${'x'.repeat(17_000_000)}"]`, 413, 'payload-too-large'],
  ])('%s %s %.20s', async (method, path, body, status, code) => {
    const { organization, admin } = await scene();
    await admin.request('PUT', denylist, { json: ['kept'] });
    const answer = await admin.request(method, path, { body });
    expect([answer.status, answer.body]).toMatchObject([status, { code }]);
    expect(await denied(organization)).toEqual(['kept']);
  });

  test('a player key is refused before its body is read', async () => {
    const { organization } = await scene();
    const player = await organization.player('u1');
    for (const [method, path] of [
      ['POST', deny],
      ['DELETE', deny],
      ['PUT', denylist],
    ] as const) {
      const answer = await player.request(method, path, { body: '{' });
      expect([answer.status, answer.body]).toMatchObject([403, { code: 'admin-required' }]);
    }
  });
});
