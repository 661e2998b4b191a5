import { Redis } from 'ioredis';
import { type RedisProcess, startRedis, unusedPort } from './redis.ts';

export interface RedisCluster {
  /** redis+cluster://… naming every master. */
  url: string;
  masters: RedisProcess[];
  /** One per master, in the same order, if asked for. */
  replicas: RedisProcess[];
  stop: () => Promise<void>;
}

/**
 * A private Redis Cluster of three masters, ready for commands; `replicas` adds one to each. A killed master's
 * replica takes over within about four seconds.
 */
export async function startCluster(options: { replicas?: boolean } = {}): Promise<RedisCluster> {
  const servers = await Promise.all(Array.from({ length: options.replicas ? 6 : 3 }, startNode));
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  const masters = servers.slice(0, 3);
  const replicas = servers.slice(3);
  const clients = servers.map((server) => new Redis(server.url));
  try {
    const [first] = clients;
    const ids = await Promise.all(clients.map((client) => client.cluster('MYID')));
    for (const [index, client] of clients.entries()) {
      await client.call('cluster', 'set-config-epoch', String(index + 1));
      const at = servers[index];
      if (index > 0 && at !== undefined) {
        await first?.call('cluster', 'meet', at.host, String(at.port), String(at.busPort));
      }
    }
    for (const [index, bounds] of [
      [0, 5460],
      [5461, 10922],
      [10923, 16383],
    ].entries()) {
      await clients[index]?.call('cluster', 'addslotsrange', ...bounds);
    }
    await Promise.all(clients.map((client) => untilSeen(client, ids)));
    for (const [index] of replicas.entries()) {
      await clients[index + 3]?.cluster('REPLICATE', String(ids[index]));
    }
    await Promise.all(clients.map((client, index) => untilWhole(client, index < 3 ? undefined : 'slave')));
    return {
      url: `redis+cluster://${masters.map((one) => `127.0.0.1:${one.port}`).join(',')}`,
      masters,
      replicas,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    for (const client of clients) client.disconnect();
  }
}

async function startNode(): Promise<RedisProcess & { busPort: number }> {
  const busPort = await unusedPort();
  const args = [
    '--cluster-enabled',
    'yes',
    '--cluster-port',
    String(busPort),
    '--cluster-node-timeout',
    '2000',
    // Or one lost master would stop the others too, until its replica has taken over.
    '--cluster-require-full-coverage',
    'no',
  ];
  return { ...(await startRedis(args)), busPort };
}

async function untilSeen(client: Redis, ids: unknown[]): Promise<void> {
  await until(async () => {
    const nodes = String(await client.cluster('NODES'));
    return ids.every((id) => nodes.includes(String(id)));
  });
}

async function untilWhole(client: Redis, role: string | undefined): Promise<void> {
  await until(async () => {
    const info = await client.cluster('INFO');
    const replication = await client.info('replication');
    const settled = role === undefined || replication.includes('master_link_status:up');
    return settled && info.includes('cluster_state:ok') && info.includes('cluster_slots_ok:16384');
  });
}

/** The cluster's gossip has no event to wait for. */
async function until(reached: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!(await reached())) {
    if (Date.now() > deadline) throw new Error('the cluster did not come together');
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
}
