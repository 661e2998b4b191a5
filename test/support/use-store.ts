import { afterAll, afterEach } from '@jest/globals';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';
import { openTestStore } from './store.ts';

/** A client of the run's Redis for all tests of a file, closed after them. */
export async function useTestStore(): Promise<RedisClient> {
  const store = await openTestStore();
  afterAll(() => closeRedis(store));
  return store;
}

/** What a test adds to this list is called after it, the last first, even if the test fails. */
export function useCleanup(): (() => unknown)[] {
  const steps: (() => unknown)[] = [];
  afterEach(async () => {
    for (const step of steps.splice(0).toReversed()) await step();
  });
  return steps;
}
