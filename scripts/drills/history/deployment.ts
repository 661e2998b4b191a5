import { Redis } from 'ioredis';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { startCluster, type RedisCluster } from '../../../test/support/servers/redis-cluster.ts';
import { openTestStore } from '../../../test/support/store.ts';
import { startBridgeProcess, startDurableRedis, type Server } from '../processes.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';

export const keyPrefix = 'pb:';

/** Two bridges on one store, to be broken. */
export interface Deployment {
  bridges: readonly [Server, Server];
  /** Exactly one of the two. */
  redis: Server | undefined;
  cluster: RedisCluster | undefined;
  /** The environment of the operator's tools. */
  env: Record<string, string>;
  /** A connection of the drill's own, to set things up with. */
  store: RedisClient;
  close: () => Promise<void>;
}

export interface DeploymentOptions {
  store: 'single' | 'cluster';
  /** Of the bridges. */
  environment?: Record<string, string> | undefined;
}

export async function openDeployment({
  store: kind,
  environment = {},
}: DeploymentOptions): Promise<Deployment> {
  const releasers = createReleasers();
  try {
    const cluster = kind === 'cluster' ? await startCluster({ replicas: true }) : undefined;
    if (cluster !== undefined) {
      releasers.onClose('cluster', cluster.stop);
      // On a busy machine a node may pause for seconds: only the drill decides when there is a failover.
      await setNodeTimeout(cluster, 30_000);
    }
    const redis = kind === 'single' ? await startDurableRedis() : undefined;
    if (redis !== undefined) releasers.onClose('Redis', redis.stop);

    const env = { REDIS_URL: (cluster ?? redis)?.url ?? '', KEY_PREFIX: keyPrefix, ...environment };
    const store = await openTestStore(env.REDIS_URL);
    releasers.onClose('connection', async () => await closeRedis(store));
    const open = async (): Promise<Server> => {
      const bridge = await startBridgeProcess(env);
      releasers.onClose('bridge', bridge.stop);
      return bridge;
    };
    const first = await open();
    return { bridges: [first, await open()], redis, cluster, env, store, close: releasers.close };
  } catch (error) {
    await releasers.close();
    throw error;
  }
}

/** How long a node may be silent until its replica takes over, in ms. */
export async function setNodeTimeout({ masters, replicas }: RedisCluster, timeout: number): Promise<void> {
  for (const { url } of [...masters, ...replicas]) {
    const node = new Redis(url);
    await node.config('SET', 'cluster-node-timeout', String(timeout));
    node.disconnect();
  }
}
