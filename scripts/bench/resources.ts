import { createReleasers } from '../../src/lib/releasers.ts';
import { closeRedis, connectRedis } from '../../src/redis/connection/connect.ts';
import { startRedis } from '../../test/support/redis.ts';
import { seedAfternoon, seedOrganization } from './load/seed.ts';
import { kept, serve, serveBridge, type Served } from './servers/serve.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';

export interface Plan {
  /** How often every contender is measured, in turn with the others. */
  rounds: number;
  /** How long one measurement lasts. */
  seconds: number;
  /** Profiles that the migration loads. */
  profiles: number;
}

/** What the sections measure: one private Redis, and the bridge as it would run in production. */
export type Resources = Awaited<ReturnType<typeof openResources>>;

/** A private Redis without persistence, which records whatever takes it longer than 1 ms (SLOWLOG). */
export async function openStore(): Promise<{ url: string; store: RedisClient; close: () => Promise<void> }> {
  const redis = await startRedis(['--slowlog-log-slower-than', '1000', '--slowlog-max-len', '1000']);
  try {
    // To empty a store of a million profiles takes a slow machine seconds.
    const client = await connectRedis(redis.url, { commandTimeout: 60_000 });
    const close = async (): Promise<void> => {
      await closeRedis(client);
      await redis.stop();
    };
    return { url: redis.url, store: client, close };
  } catch (error) {
    await redis.stop();
    throw error;
  }
}

/** What the store's Redis has allocated, in bytes. */
export async function usedMemory(store: RedisClient): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await store.info('memory'))?.[1]);
}

/** Opens the resources, with 1,000 users for each of the three servers. The bridge must have been compiled. */
export async function openResources(plan: Plan, say: (line: string) => void) {
  const releasers = createReleasers();
  try {
    const { url: redisUrl, store, close } = await openStore();
    releasers.onClose('redis', close);

    await Promise.all([
      seedOrganization(store, 'bridge'),
      seedOrganization(store, 'bare'),
      seedAfternoon(store),
    ]);

    const openBridge = (environment: Record<string, string>): Promise<Served> =>
      kept(releasers, serveBridge(redisUrl, environment));
    const open = (file: string): Promise<Served> => kept(releasers, serve(file, { REDIS_URL: redisUrl }));
    return {
      ...plan,
      redisUrl,
      store,
      bridge: await openBridge({}),
      /** The limit, and the version written in an afternoon (servers/). */
      bare: await open('bare.ts'),
      afternoon: await open('afternoon.ts'),
      /** Another bridge on the same Redis, until the resources are closed. */
      openBridge,
      say,
      close: releasers.close,
    };
  } catch (error) {
    await releasers.close();
    throw error;
  }
}
