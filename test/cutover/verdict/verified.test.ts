import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  defineCutoverScripts,
  readCutover,
  type CutoverStore,
} from '../../../src/cutover/switch/registry.ts';
import { recordVerified } from '../../../src/cutover/verdict/verified.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { freshPrefix } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';

let store: CutoverStore;
beforeAll(async () => {
  store = defineCutoverScripts(await openTestStore());
});
afterAll(() => closeRedis(store));

test("a clean verify is dated by its snapshot, on the store's clock", async () => {
  const prefix = freshPrefix();
  await store.hset(`${prefix}cutover`, 'mode', 'mirror');
  const { now: before } = await readCutover(store, prefix);
  await recordVerified(store, prefix, 5000);
  const { verifiedAt = 0, now: after } = await readCutover(store, prefix);
  expect(verifiedAt).toBeGreaterThanOrEqual(before - 5001);
  expect(verifiedAt).toBeLessThanOrEqual(after - 5000);
});

test('a clean verify leaves no trace where there is no cut-over', async () => {
  const prefix = freshPrefix();
  await recordVerified(store, prefix, 5000);
  expect(await store.exists(`${prefix}cutover`)).toBe(0);
});
