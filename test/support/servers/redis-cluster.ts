import { Redis } from 'ioredis';
import { type RedisProcess, startRedis, untilPortsAreFree, unusedPort } from '../redis.ts';
import { until } from '../until.ts';

export interface RedisCluster {
  /** redis+cluster://… naming every master. */
  url: string;
  masters: RedisProcess[];
  /** One per master, in the same order, if asked for. */
  replicas: RedisProcess[];
  /** Moves the slot of a key, and with it every key there, to the next master, as `redis-cli --cluster reshard` does. */
  moveSlotOf: (key: string) => Promise<void>;
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
      moveSlotOf: (key) => moveSlot(masters, key),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    for (const client of clients) client.disconnect();
  }
}

async function moveSlot(masters: readonly RedisProcess[], key: string): Promise<void> {
  const nodes = masters.map(({ url }) => new Redis(url));
  try {
    const ids = await Promise.all(nodes.map((node) => node.cluster('MYID')));
    const slot = Number(await nodes[0]?.cluster('KEYSLOT', key));
    const ranges = (await nodes[0]?.cluster('SLOTS')) ?? [];
    const [, , owner] = ranges.find(([first, last]) => first <= slot && slot <= last) ?? [];
    const from = ids.indexOf(owner?.[2] ?? '');
    const to = (from + 1) % nodes.length;
    const [source, target, place] = [nodes[from], nodes[to], masters[to]];
    if (source === undefined || target === undefined || place === undefined) throw new Error('no such slot');
    await target.cluster('SETSLOT', slot, 'IMPORTING', String(ids[from]));
    await source.cluster('SETSLOT', slot, 'MIGRATING', String(ids[to]));
    for (;;) {
      const keys = await source.cluster('GETKEYSINSLOT', slot, 100);
      if (keys.length === 0) break;
      await source.call('migrate', place.host, String(place.port), '', '0', '5000', 'KEYS', ...keys);
    }
    for (const node of [target, source, ...nodes]) {
      await node.cluster('SETSLOT', slot, 'NODE', String(ids[to]));
    }
  } finally {
    for (const node of nodes) node.disconnect();
  }
}

type Node = RedisProcess & { busPort: number };

const startNode = (): Promise<Node> => untilPortsAreFree(startNodeOnce);

async function startNodeOnce(): Promise<Node> {
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
