import { Redis } from 'ioredis';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { startCluster, type RedisCluster } from '../../../test/support/servers/redis-cluster.ts';
import { openTestStore } from '../../../test/support/store.ts';
import { startBridgeProcess, startDurableRedis, type Server } from '../../../test/support/processes.ts';

export const keyPrefix = 'pb:';

/** Two bridges on one store, to be broken. */
export type Deployment = Awaited<ReturnType<typeof openDeployment>>;

export interface DeploymentOptions {
  store: 'single' | 'cluster';
  /** Of the bridges. */
  environment?: Record<string, string> | undefined;
}

export async function openDeployment({ store: kind, environment = {} }: DeploymentOptions) {
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
    return {
      bridges: [await open(), await open()] as const,
      /** Exactly one of the two. */
      redis,
      cluster,
      /** The environment of the operator's tools. */
      env,
      /** A connection of the drill's own, to set things up with. */
      store,
      close: releasers.close,
    };
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
