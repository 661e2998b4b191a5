import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startBridge, type TestBridge } from '../../support/bridge.ts';
import { createClient } from '../../support/requests/client.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';
import { revokeApiKey } from '../../../src/redis/operator/api-keys.ts';
import { startStopwatch } from '../../support/stopwatch.ts';

const reindexOpen = script<(string | number)[], unknown>('reindex/open');

let bridge: TestBridge;
beforeAll(async () => {
  bridge = await startBridge();
});
afterAll(async () => {
  await bridge.close();
});

const reference = (objectDefinitionId: string) => ({ datasourceId: 'images', objectDefinitionId });

describe('GET profile', () => {
  test('answers 404 profile-not-found until there is a profile', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const answer = await player.request('GET', '/api/profile/');
    expect([answer.status, answer.body]).toMatchObject([404, { code: 'profile-not-found' }]);
  });

  test('answers the shape of contract 2.1, unset fields absent', async () => {
    const organization = await bridge.newOrganization();
    await bridge.store.hset(`${organization.base}objects`, 'images\na1', 'https://cdn.example/a1.png');
    await bridge.store.hset(`${organization.base}p:u1`, { u: 'ada', ar: 'images\na1', w: '0xabc', t: '1' });
    const player = await organization.player('u1');
    expect((await player.request('GET', '/api/profile')).body).toEqual({
      username: 'ada',
      avatar: { url: 'https://cdn.example/a1.png', datasourceId: 'images', objectDefinitionId: 'a1' },
      evmLinkedWalletAddress: '0xabc',
    });
  });

  test('answers without the URL of a reference that cannot be read', async () => {
    const organization = await bridge.newOrganization({
      objectImageUrlTemplate: 'https://i.example/{datasourceId}',
    });
    await bridge.store.hset(`${organization.base}p:u1`, { u: 'ada', pr: 'images', t: '1' });
    const answer = await (await organization.player('u1')).request('GET', '/api/profile');
    expect([answer.status, answer.body]).toEqual([200, { username: 'ada' }]);
  });

  test('shows a wallet only when it is verified', async () => {
    const organization = await bridge.newOrganization();
    await bridge.store.hset(`${organization.base}p:u1`, { wu: '0xabc', t: '1' });
    expect((await (await organization.player('u1')).request('GET', '/api/profile/')).body).toEqual({});
  });

  test('HEAD answers as GET does, without the body', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    await player.request('PUT', '/api/profile/', { json: { username: 'ada' } });
    const head = await player.request('HEAD', '/api/profile/');
    const get = await player.request('GET', '/api/profile/');
    expect([head.status, head.text, head.headers['content-length']]).toEqual([
      200,
      '',
      get.headers['content-length'],
    ]);
  });
});

describe('PUT profile', () => {
  test('creates a profile, and changes only what is given afterwards', async () => {
    const organization = await bridge.newOrganization({
      objectImageUrlTemplate: 'https://i.example/{datasourceId}/{objectDefinitionId}.png',
    });
    const player = await organization.player('u1');
    const created = await player.request('PUT', '/api/profile', {
      json: { username: 'ada', avatarObjectDefinitionId: reference('a b/ü') },
    });
    expect([created.status, created.body]).toEqual([
      200,
      { username: 'ada', avatarObjectDefinitionId: reference('a b/ü') },
    ]);
    await player.request('PUT', '/api/profile/', {
      json: { profilePictureObjectDefinitionId: reference('p1') },
    });
    expect((await player.request('GET', '/api/profile/')).body).toEqual({
      username: 'ada',
      profilePictureUrl: 'https://i.example/images/p1.png',
      avatar: { url: 'https://i.example/images/a%20b%2F%C3%BC.png', ...reference('a b/ü') },
    });
  });

  test.each(['.', '..'])(
    'refuses the id %s, which a template would make a step to another folder',
    async (id) => {
      const organization = await bridge.newOrganization({
        objectImageUrlTemplate: 'https://i.example/a/{datasourceId}/{objectDefinitionId}',
      });
      const player = await organization.player('u1');
      for (const avatar of [reference(id), { ...reference('p1'), datasourceId: id }]) {
        const answer = await player.request('PUT', '/api/profile/', {
          json: { avatarObjectDefinitionId: avatar },
        });
        expect([answer.status, answer.body]).toMatchObject([422, { code: 'object-not-found' }]);
      }
    },
  );

  test('null unsets a picture and an avatar', async () => {
    const organization = await bridge.newOrganization({ objectImageUrlTemplate: 'https://i.example/x' });
    const player = await organization.player('u1');
    await player.request('PUT', '/api/profile/', {
      json: {
        profilePictureObjectDefinitionId: reference('p'),
        avatarObjectDefinitionId: reference('a'),
      },
    });
    const answer = await player.request('PUT', '/api/profile/', {
      json: { profilePictureObjectDefinitionId: null, avatarObjectDefinitionId: null },
    });
    expect(answer.body).toEqual({});
  });

  test('an empty object creates an empty profile, and unknown fields are ignored', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    expect((await player.request('PUT', '/api/profile/', { json: { colour: 'red' } })).body).toEqual({});
    expect((await player.request('GET', '/api/profile/')).status).toBe(200);
  });

  test('refuses a name of another user, without saying whose it is', async () => {
    const organization = await bridge.newOrganization();
    const [ada, bob] = [await organization.player('u1'), await organization.player('u2')];
    await ada.request('PUT', '/api/profile/', { json: { username: 'ada' } });
    const answer = await bob.request('PUT', '/api/profile/', { json: { username: 'ada' } });
    expect([answer.status, answer.body]).toMatchObject([409, { code: 'username-taken' }]);
    expect(answer.text).not.toContain('u1');
    expect((await bob.request('GET', '/api/profile/')).status).toBe(404);
  });

  test('a name is free again once its user has another', async () => {
    const organization = await bridge.newOrganization();
    const [ada, bob] = [await organization.player('u1'), await organization.player('u2')];
    await ada.request('PUT', '/api/profile/', { json: { username: 'ada' } });
    await ada.request('PUT', '/api/profile/', { json: { username: 'ada2' } });
    expect((await bob.request('PUT', '/api/profile/', { json: { username: 'ada' } })).status).toBe(200);
  });

  test('50 users racing for one name: exactly one gets it', async () => {
    const organization = await bridge.newOrganization();
    const players = await Promise.all(
      Array.from({ length: 50 }, (_, index) => organization.player(`user-${index}`)),
    );
    const answers = await Promise.all(
      players.map((player) => player.request('PUT', '/api/profile/', { json: { username: 'the-one' } })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(49);
  });

  test('names are the same when their NFC forms are, and are kept as given', async () => {
    const organization = await bridge.newOrganization();
    const [one, two] = [await organization.player('u1'), await organization.player('u2')];
    await one.request('PUT', '/api/profile/', { json: { username: 'Ame\u0301lie' } });
    const answer = await two.request('PUT', '/api/profile/', { json: { username: 'Am\u00E9lie' } });
    expect(answer.status).toBe(409);
    expect((await one.request('GET', '/api/profile/')).body).toEqual({ username: 'Ame\u0301lie' });
    expect((await two.request('PUT', '/api/profile/', { json: { username: 'AME\u0301LIE' } })).status).toBe(
      200,
    );
  });

  test('a case-insensitive organization folds width and case, and lets a user recase their own name', async () => {
    const organization = await bridge.newOrganization({ comparison: 'case-insensitive' });
    const [one, two] = [await organization.player('u1'), await organization.player('u2')];
    await one.request('PUT', '/api/profile/', { json: { username: 'Ada' } });
    expect((await two.request('PUT', '/api/profile/', { json: { username: 'ＡＤＡ' } })).status).toBe(409);
    expect((await one.request('PUT', '/api/profile/', { json: { username: 'ADA' } })).body).toEqual({
      username: 'ADA',
    });
  });

  test("applies the organization's rules to a new name, but never to the user's own current name", async () => {
    const organization = await bridge.newOrganization({ minLength: 3, maxLength: 5, pattern: '[a-z]+' });
    const player = await organization.player('u1');
    for (const username of ['ab', 'abcdef', 'abc1']) {
      const answer = await player.request('PUT', '/api/profile/', { json: { username } });
      expect([username, answer.status, answer.body]).toMatchObject([
        username,
        422,
        { code: 'username-not-allowed' },
      ]);
    }
    await bridge.store.hset(`${organization.base}p:u1`, { u: 'X!', t: '1' });
    expect((await player.request('PUT', '/api/profile/', { json: { username: 'X!' } })).status).toBe(200);
    await bridge.store.hset(`${organization.base}p:u1`, 'u', 'Zoé'.normalize('NFC'));
    const decomposed = 'Zoé'.normalize('NFD');
    expect((await player.request('PUT', '/api/profile/', { json: { username: decomposed } })).body).toEqual({
      username: decomposed,
    });
    expect((await player.request('PUT', '/api/profile/', { json: { username: 'abc' } })).status).toBe(200);
  });

  test('refuses references to objects that do not exist, or are not owned where ownership is required', async () => {
    const organization = await bridge.newOrganization({ requireOwnership: true });
    const player = await organization.player('u1');
    const put = () =>
      player.request('PUT', '/api/profile/', {
        json: { username: 'ada', avatarObjectDefinitionId: reference('a') },
      });
    expect((await put()).body).toMatchObject({ code: 'object-not-found' });
    await bridge.store.hset(`${organization.base}objects`, 'images\na', 'https://cdn.example/a.png');
    expect((await put()).body).toMatchObject({ code: 'object-not-in-collection' });
    expect((await player.request('GET', '/api/profile/')).status).toBe(404);
    await bridge.store.sadd(`${organization.base}c:u1`, 'images\na');
    expect((await put()).status).toBe(200);
  });

  test('is judged by the settings that hold when it arrives', async () => {
    const organization = await bridge.newOrganization();
    const player = await organization.player('u1');
    await player.request('PUT', '/api/profile/', { json: { username: 'abcdef' } });
    await bridge.store.hset(`${organization.base}settings`, 'max', '3');
    expect((await player.request('PUT', '/api/profile/', { json: { username: 'abcd' } })).status).toBe(422);
  });

  test('is refused within 3 s while it waits for an index being rebuilt, unless it has no name', async () => {
    const organization = await bridge.newOrganization();
    const player = await organization.player('u1');
    await reindexOpen(bridge.store, organization.base, 'rebuild', 60_000, 'case-insensitive');
    const elapsed = startStopwatch();
    const answer = await player.request('PUT', '/api/profile/', { json: { username: 'ada' } });
    expect([answer.status, answer.body]).toMatchObject([503, { code: 'overloaded' }]);
    expect(elapsed()).toBeLessThan(3000);
    expect((await player.request('PUT', '/api/profile/', { json: {} })).status).toBe(200);
  });
});

describe('bad input to PUT profile changes nothing', () => {
  const lone = '"\\ud800"';
  test.each<[string, string, number, string]>([
    ['no JSON', '{"username":', 400, 'invalid-json'],
    ['an empty body', '', 400, 'invalid-json'],
    ['a list', '[]', 400, 'invalid-body'],
    ['null', 'null', 400, 'invalid-body'],
    ['a null name', '{"username":null}', 400, 'invalid-body'],
    ['an empty name', '{"username":""}', 400, 'invalid-body'],
    ['a number as name', '{"username":7}', 400, 'invalid-body'],
    ['a lone surrogate', `{"username":${lone}}`, 400, 'invalid-body'],
    ['a control character', '{"username":"a\\u0000b"}', 400, 'invalid-body'],
    ['257 code points', JSON.stringify({ username: '𝒳'.repeat(257) }), 400, 'invalid-body'],
    ['a picture set by the client', '{"profilePicture":"x"}', 400, 'invalid-body'],
    ['half a reference', '{"avatarObjectDefinitionId":{"datasourceId":"d"}}', 400, 'invalid-body'],
    [
      'a line feed in an id',
      '{"avatarObjectDefinitionId":{"datasourceId":"a\\nb","objectDefinitionId":"c"}}',
      400,
      'invalid-body',
    ],
    ['10 MB', JSON.stringify({ username: 'x'.repeat(10_000_000) }), 413, 'payload-too-large'],
  ])('%s', async (_name, body, status, code) => {
    const player = await (await bridge.newOrganization()).player('u1');
    const answer = await player.request('PUT', '/api/profile/', { body });
    expect([answer.status, answer.body]).toMatchObject([status, { code }]);
    expect((await player.request('GET', '/api/profile/')).status).toBe(404);
  });

  test('bytes that are not UTF-8', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const body = Buffer.concat([Buffer.from('{"username":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    expect((await player.request('PUT', '/api/profile/', { body })).body).toMatchObject({
      code: 'invalid-json',
    });
  });

  test('another media type, or another charset', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    for (const type of ['text/plain', 'image/png', 'application/json; charset=utf-16']) {
      const answer = await player.request('PUT', '/api/profile/', {
        body: '{}',
        headers: { 'content-type': type },
      });
      expect([answer.status, answer.body]).toMatchObject([415, { code: 'unsupported-media-type' }]);
      expect(answer.text).toContain('application/json or multipart/form-data');
    }
  });

  test('`__proto__` changes no prototype', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const answer = await player.request('PUT', '/api/profile/', {
      body: '{"__proto__":{"username":"evil"},"constructor":{"prototype":{"username":"evil"}}}',
    });
    expect([answer.status, answer.body]).toEqual([200, {}]);
  });
});

describe('credentials', () => {
  test('are checked before the body: an invalid key with an invalid body is 401', async () => {
    const organization = await bridge.newOrganization();
    const stranger = createClient(bridge.url, { organization: organization.id, apiKey: 'nobody' });
    const answer = await stranger.request('PUT', '/api/profile/', { body: '{' });
    expect([answer.status, answer.body]).toMatchObject([401, { code: 'invalid-api-key' }]);
  });

  test('are 401 if one of the headers is absent', async () => {
    for (const credentials of [{ apiKey: 'x' }, { organization: 'x' }, {}]) {
      const answer = await createClient(bridge.url, credentials).request('GET', '/api/profile/');
      expect(answer.body).toMatchObject({ code: 'missing-credentials' });
    }
  });

  test('of another organization are refused like unknown ones', async () => {
    const [one, two] = [await bridge.newOrganization(), await bridge.newOrganization()];
    const { apiKey } = await one.newKey({ role: 'player', userId: 'u1' });
    const answer = await createClient(bridge.url, { organization: two.id, apiKey }).request(
      'GET',
      '/api/profile/',
    );
    expect([answer.status, answer.body]).toMatchObject([401, { code: 'invalid-api-key' }]);
  });

  test('are refused from the very next request on after a key was revoked or has expired', async () => {
    const organization = await bridge.newOrganization();
    const { apiKey, keyId } = await organization.newKey({ role: 'player', userId: 'u1' });
    const expired = await organization.newKey({ role: 'player', userId: 'u1', expiresAt: Date.now() - 1000 });
    const request = (key: string) =>
      createClient(bridge.url, { organization: organization.id, apiKey: key }).request(
        'GET',
        '/api/profile/',
      );
    expect((await request(apiKey)).status).toBe(404);
    await revokeApiKey(bridge.store, organization.base, keyId);
    expect((await request(apiKey)).status).toBe(401);
    expect((await request(expired.apiKey)).status).toBe(401);
  });

  test('give access to a profile if the key is bound to a user, an admin key included', async () => {
    const organization = await bridge.newOrganization();
    const admin = await organization.admin();
    for (const [method, json] of [
      ['GET', undefined],
      ['PUT', {}],
    ] as const) {
      const answer = await admin.request(method, '/api/profile/', { json });
      expect([answer.status, answer.body]).toMatchObject([403, { code: 'no-user' }]);
    }
    const { apiKey } = await organization.newKey({ role: 'admin', userId: 'boss' });
    const boss = createClient(bridge.url, { organization: organization.id, apiKey });
    expect((await boss.request('PUT', '/api/profile/', { json: {} })).status).toBe(200);
  });

  test('separate organizations, even those whose IDs look alike', async () => {
    const ids = ['a}:p:u1', 'a', 'a:b', 'ä{x}', '日本', '%7B', '{', '__proto__'];
    const players = await Promise.all(
      ids.map(async (id) => (await bridge.newOrganization({}, id)).player('u1')),
    );
    for (const [index, player] of players.entries()) {
      const username = index % 2 === 0 ? 'same' : 'Same';
      expect((await player.request('PUT', '/api/profile/', { json: { username } })).status).toBe(200);
    }
    for (const [index, player] of players.entries()) {
      const username = index % 2 === 0 ? 'same' : 'Same';
      expect((await player.request('GET', '/api/profile/')).body).toEqual({ username });
    }
  });
});
