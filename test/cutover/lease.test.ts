import { beforeEach, expect, test } from '@jest/globals';
import { claimLease } from '../../src/cutover/lease.ts';
import { freshPrefix } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let key: string;

beforeEach(() => {
  key = `${freshPrefix()}lease`;
});

test('a lease belongs to one holder at a time, until it is released', async () => {
  const mine = await claimLease(store, key, 'one');
  expect(mine?.isHeld()).toBe(true);
  expect(await claimLease(store, key, 'two')).toBeUndefined();
  expect(await store.get(key)).toBe('one');
  await mine?.release();
  expect(mine?.isHeld()).toBe(false);
  const theirs = await claimLease(store, key, 'two');
  expect(theirs?.isHeld()).toBe(true);
  await theirs?.release();
});

test('a lease is renewed as long as it is held', async () => {
  const mine = await claimLease(store, key, 'one');
  await store.pexpire(key, 2000);
  await until(async () => (await store.pttl(key)) > 4000);
  expect(mine?.isHeld()).toBe(true);
  await mine?.release();
  expect(await store.exists(key)).toBe(0);
});

test('a lease is neither renewed nor released by a holder that has lost it', async () => {
  const lost = await claimLease(store, key, 'one');
  await store.set(key, 'two', 'PX', 4000);
  await until(async () => lost?.isHeld() === false);
  await lost?.release();
  expect(await store.get(key)).toBe('two');
});
