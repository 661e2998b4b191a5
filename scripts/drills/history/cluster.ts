import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RedisCluster } from '../../../test/support/servers/redis-cluster.ts';
import type { RedisProcess } from '../../../test/support/redis.ts';
import { setNodeTimeout } from './deployment.ts';
import type { FaultContext } from './fault.ts';
import type { DrilledOrganization } from './organization.ts';

/** Moves the slot of an organization to another master, key by key, as `redis-cli --cluster reshard` does. */
export async function moveSlot(
  { deployment, random }: FaultContext,
  { base }: DrilledOrganization,
): Promise<void> {
  const { masters } = clusterOf(deployment);
  const nodes = masters.map(({ url }) => new Redis(url));
  try {
    const slot = Number(await nodes[0]?.cluster('KEYSLOT', base));
    const ids = await Promise.all(nodes.map(async (node) => await node.cluster('MYID')));
    const from = ids.indexOf(await ownerOf(nodes[0], slot));
    const to = (from + random.between(1, 2)) % 3;
    const [source, target] = [nodes[from], nodes[to]];
    const { host, port } = masters[to] ?? {};
    if (source === undefined || target === undefined) throw new Error('the slot has no master');

    await target.cluster('SETSLOT', slot, 'IMPORTING', ids[from] ?? '');
    await source.cluster('SETSLOT', slot, 'MIGRATING', ids[to] ?? '');
    for (;;) {
      const [next] = await source.cluster('GETKEYSINSLOT', slot, 1);
      if (next === undefined) break;
      await migrateKey(source, { host: String(host), port: String(port) }, next);
      await sleep(random.between(0, 5));
    }
    for (const node of [target, source, ...nodes]) await node.cluster('SETSLOT', slot, 'NODE', ids[to] ?? '');
  } finally {
    for (const node of nodes) node.disconnect();
  }
}

/** On a busy machine the target may respond too late, with or without the key: retried, as an operator would. */
async function migrateKey(source: Redis, target: { host: string; port: string }, key: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await source.call('migrate', target.host, target.port, key, '0', '5000', 'REPLACE');
      return;
    } catch (error) {
      if (attempt === 10 || !String(error).includes('IOERR')) throw error;
    }
  }
}

async function ownerOf(node: Redis | undefined, slot: number): Promise<string> {
  for (const [first, last, owner] of (await node?.cluster('SLOTS')) ?? []) {
    if (first <= slot && slot <= last && owner !== undefined) return owner[2];
  }
  throw new Error(`nobody serves slot ${slot}`);
}

/**
 * Kills the master of the first organization; resolves once its replica has taken over. The new master gets a replica in
 * turn, that of a master which serves no organization of the drill: with WRITE_REPLICAS it needs one.
 */
export async function failOver({ deployment, organizations }: FaultContext): Promise<void> {
  const cluster = clusterOf(deployment);
  const { masters, replicas } = cluster;
  await setNodeTimeout(cluster, 2000);
  const direct = new Redis(masters[0]?.url ?? '');
  const slots = await Promise.all(
    organizations.map(async ({ base }) => await direct.cluster('KEYSLOT', base)),
  );
  direct.disconnect();
  const serving = slots.map((slot) => Math.min(2, Math.floor(slot / 5461)));
  const killed = serving[0] ?? 0;
  const spare = replicas[[0, 1, 2].findIndex((master) => !serving.includes(master))];
  const [master, replica] = [masters[killed], replicas[killed]];
  if (master === undefined || replica === undefined || spare === undefined)
    throw new Error('the slot has no replica');
  process.kill(master.pid, 'SIGKILL');
  await untilMaster(replica);
  await attach(spare, replica);
}

/** Makes a node the replica of a master as soon as it knows that this node is a master. */
async function attach(node: RedisProcess, master: RedisProcess): Promise<void> {
  const [replica, promoted] = [new Redis(node.url), new Redis(master.url)];
  try {
    const id = await promoted.cluster('MYID');
    while ((await replica.cluster('REPLICATE', id).catch(String)) !== 'OK') await sleep(50);
  } finally {
    replica.disconnect();
    promoted.disconnect();
  }
}

async function untilMaster({ url }: RedisProcess): Promise<void> {
  const replica = new Redis(url);
  try {
    while ((await replica.role())[0] !== 'master') await sleep(50);
  } finally {
    replica.disconnect();
  }
}

function clusterOf({ cluster }: FaultContext['deployment']): RedisCluster {
  if (cluster === undefined) throw new Error('this fault is one of a cluster');
  return cluster;
}
