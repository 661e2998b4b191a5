import { afterAll } from '@jest/globals';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';
import { openTestStore } from './store.ts';

/** A client of the run's Redis for all tests of a file, closed after them. */
export async function useTestStore(): Promise<RedisClient> {
  const store = await openTestStore();
  afterAll(() => closeRedis(store));
  return store;
}
