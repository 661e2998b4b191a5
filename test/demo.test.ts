import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openDemo } from '../src/demo.ts';
import { closeRedis } from '../src/redis/connection/connect.ts';
import { apiKeyKey, hashApiKey, organizationBase } from '../src/redis/keys.ts';
import { findSettings, saveSettings } from '../src/redis/organizations.ts';
import type { RedisClient } from '../src/redis/connection/client.ts';
import { freshPrefix } from './support/redis.ts';
import { openTestStore } from './support/store.ts';

const folder = mkdtempSync(join(tmpdir(), 'demo-'));
let store: RedisClient;
beforeAll(async () => {
  store = await openTestStore();
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await closeRedis(store);
});

test('new keys for a demo organization, whose file was lost, leave its settings as they are', async () => {
  const prefix = freshPrefix();
  const first = await openDemo(store, prefix, folder);
  await saveSettings(store, prefix, 'demo', { maxLength: 20 });
  rmSync(folder, { recursive: true });

  const second = await openDemo(store, prefix, folder);
  expect(second.playerKey).not.toBe(first.playerKey);
  expect(await findSettings(store, prefix, 'demo')).toMatchObject({ maxLength: 20 });
});

test('keys that Redis does not have, as after a restore, are replaced; revoked ones are not', async () => {
  const prefix = freshPrefix();
  const first = await openDemo(store, prefix, folder);
  const base = organizationBase(prefix, 'demo');
  const record = apiKeyKey(base, hashApiKey(first.playerKey));
  await store.hset(record, 'x', Date.now());
  expect(await openDemo(store, prefix, folder)).toEqual(first);
  await store.del(record);
  expect((await openDemo(store, prefix, folder)).playerKey).not.toBe(first.playerKey);
});

test.each(['', 'null', '{}'])('a file of keys that cannot be read counts as lost (%j)', async (text) => {
  const prefix = freshPrefix();
  const first = await openDemo(store, prefix, folder);
  writeFileSync(join(folder, 'demo-keys.json'), text);
  const second = await openDemo(store, prefix, folder);
  expect(second.playerKey).toMatch(/^pb_/);
  expect(second.playerKey).not.toBe(first.playerKey);
  expect(await openDemo(store, prefix, folder)).toEqual(second);
});
