import { expect, test } from '@jest/globals';
import { verify } from '../../../src/migration/engine/verify.ts';
import { authenticate } from '../../../src/redis/changes.ts';
import {
  apiKeyIdsKey,
  apiKeyKey,
  hashApiKey,
  namesBucketKey,
  organizationBase,
  organizationsKey,
  profileKey,
} from '../../../src/redis/keys.ts';
import { listOrganizations } from '../../../src/redis/organizations.ts';
import { openTestStore } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';
import { withChosen } from '../test-context.ts';
import { createTool, writeSource } from '../../support/tools/migrate.ts';

const store = await useTestStore();

test('verify finds entries of the name index that are missing, lead nowhere, or lead to another user', async () => {
  const tool = createTool();
  const profiles = ['ann', 'bob', 'cid'].map((username) => ({
    organizationId: 'acme',
    userId: `user-${username}`,
    username,
  }));
  const source = writeSource({ profiles });
  await tool.json('apply', '--source', source);
  const bucket = namesBucketKey(organizationBase(tool.prefix, 'acme'), '0', '0');
  await store.hdel(bucket, 'ann');
  await store.hset(bucket, { bob: 'user-cid', ghost: 'nobody' });
  const { exitCode, json, err } = await tool.json('verify', '--source', source);
  expect(exitCode).toBe(1);
  expect(json).toMatchObject({ index: 3, indexed: 3 });
  const found = (json['examples'] as { userId: string; detail: string }[]).map(
    ({ userId, detail }) => `${userId}: ${detail}`,
  );
  expect(found.sort()).toEqual([
    'nobody: leads from "ghost" to user "nobody", whose username is absent: run profile-bridge admin fsck --repair',
    'user-ann: name index is absent, should be "user-ann"',
    'user-bob: username "bob" is that of user "user-cid" in Redis',
    'user-cid: leads from "bob" to user "user-cid", whose username is "cid": run profile-bridge admin fsck --repair',
  ]);
  expect(err).toContain('repair the index with profile-bridge admin fsck --repair');
});

test('verify finds an entry of the name index besides those of all profiles', async () => {
  const tool = createTool();
  const source = writeSource({ profiles: [{ organizationId: 'acme', userId: 'u1', username: 'ann' }] });
  await tool.json('apply', '--source', source);
  await store.hset(namesBucketKey(organizationBase(tool.prefix, 'acme'), '0', '0'), { ghost: 'u1' });
  const { exitCode, json } = await tool.json('verify', '--source', source);
  expect(exitCode).toBe(1);
  const detail =
    'leads from "ghost" to user "u1", whose username is "ann": run profile-bridge admin fsck --repair';
  expect(json).toMatchObject({ differences: 1, indexed: 2, examples: [{ reason: 'index', detail }] });
});

test('verify looks up the names of profiles that were changed or made here, or are newer', async () => {
  const tool = createTool();
  const profiles = ['ann', 'bob', 'cid'].map((username) => ({
    organizationId: 'acme',
    userId: `user-${username}`,
    username,
    updatedAt: 1000,
  }));
  const source = writeSource({ profiles });
  await tool.json('apply', '--source', source);
  const base = organizationBase(tool.prefix, 'acme');
  const put = async (user: string, fields: object) => await store.hset(profileKey(base, user), fields);
  const bucket = namesBucketKey(base, '0', '0');
  await put('user-ann', { u: 'neo', b: '0' });
  await put('user-bob', { t: '2000', u: 'new' });
  await put('user-dan', { t: '2000', u: 'dan', b: '0' });
  await put('user-nil', { t: '2000', b: '0' });
  await store.hdel(bucket, 'ann', 'bob');
  await store.hset(bucket, { neo: 'user-ann', new: 'user-bob', dan: 'user-dan' });
  const counts = async (): Promise<object> => (await tool.json('verify', '--source', source)).json;
  expect(await counts()).toMatchObject({ index: 0, newerInRedis: 1, changedHere: 3 });

  await store.hdel(bucket, 'neo', 'new');
  await put('user-dan', { u: 'cid' });
  await store.hdel(bucket, 'dan');
  const { exitCode, json, err } = await tool.json('verify', '--source', source);
  expect({ exitCode, json }).toMatchObject({
    exitCode: 1,
    json: { index: 3, newerInRedis: 1, changedHere: 3 },
  });
  expect(err).toContain('repair the index with profile-bridge admin fsck --repair');
  const found = (json['examples'] as { where: string; reason: string; detail: string }[])
    .filter(({ reason }) => reason === 'index')
    .map(({ where, detail }) => `${where}: ${detail}`);
  expect(found.sort()).toEqual([
    `${base}p:user-ann: name index is absent, should be "user-ann"`,
    `${base}p:user-bob: name index is absent, should be "user-bob"`,
    `${base}p:user-dan: name index is "user-cid", should be "user-dan"`,
  ]);
});

test('verify names the user who has a username that is yet to change hands', async () => {
  const tool = createTool();
  const profiles = (...names: string[]) =>
    names.map((username, at) => ({ organizationId: 'acme', userId: `u${at}`, username }));
  const source = writeSource({ profiles: profiles('ann', 'bob') });
  await tool.json('apply', '--source', source);
  writeSource({ profiles: profiles('bob', 'ann') }, source);
  expect(await tool.json('verify', '--source', source)).toMatchObject({
    exitCode: 1,
    json: {
      different: 2,
      examples: [
        { userId: 'u0', reason: 'different', detail: 'username "bob" is that of user "u1"' },
        { userId: 'u1', reason: 'different', detail: 'username "ann" is that of user "u0"' },
      ],
    },
  });
});

test('verify stops on the signal while it reads the name index', async () => {
  const tool = createTool();
  const profiles = ['acme', 'globex'].map((organizationId) => ({
    organizationId,
    userId: 'u',
    username: 'ann',
  }));
  const source = writeSource({ profiles });
  await tool.json('apply', '--source', source);
  const own = await openTestStore();
  const ending = new AbortController();
  const hlen = own.hlen.bind(own);
  own.hlen = async (key) => {
    ending.abort(new Error('stopped'));
    return await hlen(key);
  };
  await withChosen(tool, source, { store: own, signal: ending.signal }, async ({ scope }, context) => {
    await expect(verify(scope, context, 'r')).rejects.toThrow('stopped');
  });
});

test('verify finds an organization that the registry has lost, and an apply registers it again', async () => {
  const tool = createTool();
  const ids = ['acme', 'other', 'third'];
  const profiles = ids.map((organizationId) => ({ organizationId, userId: 'u1', username: 'ann' }));
  const source = writeSource({ profiles });
  await tool.json('apply', '--source', source);
  await store.srem(organizationsKey(tool.prefix), 'acme', 'third');
  const { exitCode, json, err } = await tool.json('verify', '--source', source);
  expect(exitCode).toBe(1);
  const detail = 'is not in the registry of organizations: run profile-bridge admin fsck --repair';
  const issue = { entity: 'organizations', reason: 'index', detail };
  expect(json).toMatchObject({
    differences: 2,
    examples: [
      { ...issue, organizationId: 'acme' },
      { ...issue, organizationId: 'third' },
    ],
  });
  expect(err).toContain(
    ': register its organizations with profile-bridge admin fsck --repair, then verify again',
  );
  expect(await tool.json('apply', '--source', source)).toMatchObject({ exitCode: 0 });
  expect(await listOrganizations(store, tool.prefix)).toEqual(ids);
  expect(await tool.json('verify', '--source', source)).toMatchObject({ exitCode: 0 });
});

test('verify finds an API key that has lost its public id, and an apply gives it another', async () => {
  const tool = createTool();
  const apiKeySha256 = hashApiKey('secret');
  const keys = [{ organizationId: 'acme', apiKeySha256, role: 'admin' }];
  const source = writeSource({ organizations: [{ organizationId: 'acme' }], 'api-keys': keys });
  await tool.json('apply', '--source', source);
  const base = organizationBase(tool.prefix, 'acme');
  const key = apiKeyKey(base, apiKeySha256);
  const createdAt = await store.hget(key, 't');
  await store.hdel(key, 'i');
  await store.unlink(apiKeyIdsKey(base));
  const { exitCode, json } = await tool.json('verify', '--source', source);
  expect(exitCode).toBe(1);
  const detail = 'public id is absent, should be "k_…"';
  expect(json).toMatchObject({ differences: 1, examples: [{ reason: 'different', detail }] });
  expect(await tool.json('apply', '--source', source)).toMatchObject({ exitCode: 0 });
  expect((await authenticate(store, base, apiKeySha256)).kind).toBe('known');
  const id = (await store.hget(key, 'i')) ?? '';
  expect(await store.hgetall(apiKeyIdsKey(base))).toEqual({ [id]: apiKeySha256 });
  expect(await store.hget(key, 't')).toBe(createdAt);
  expect(await tool.json('verify', '--source', source)).toMatchObject({ exitCode: 0 });
});
