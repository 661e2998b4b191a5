import { Cluster, type Redis } from 'ioredis';
import { infoField, mastersOf, type RedisClient } from './client.ts';

/**
 * Reads from every master that the client is connected to: whether at least one can be read from, and what does not
 * work. Never rejects.
 */
export async function checkHealth(client: RedisClient) {
  const servers = await Promise.allSettled(mastersOf(client).map(probe));
  const answers = servers.flatMap((server) => (server.status === 'fulfilled' ? [server.value] : []));
  const masters = answers.filter(({ isReplica }) => !isReplica);
  const isPartial = masters.length < servers.length || lacksMaster(client);
  const faults = [
    ...(answers.length === 0 ? ['store-unavailable'] : []),
    ...(masters.length > 0 && isPartial ? ['store-partly-unavailable'] : []),
    ...(masters.length < answers.length ? ['store-read-only'] : []),
    ...(masters.some(({ isFull }) => isFull) ? ['store-full'] : []),
  ];
  return { isReadable: masters.length > 0, faults };
}

async function probe(server: Redis): Promise<{ isReplica: boolean; isFull: boolean }> {
  // INFO is answered even while the server is loading its data; a command that reads is not.
  const [info] = await Promise.all([server.info('memory', 'replication'), server.dbsize()]);
  const figure = (name: string): number => Number(infoField(info, name) ?? 0);
  const limit = figure('maxmemory');
  return {
    // Replicas are not used: their data may be out of date.
    isReplica: infoField(info, 'role') === 'slave',
    isFull: limit > 0 && figure('used_memory') >= limit,
  };
}

/** Whether slots belong to a master that the client has no connection to: `nodes` leaves it out. */
function lacksMaster(client: RedisClient): boolean {
  if (!(client instanceof Cluster)) return false;
  const connected = new Set(mastersOf(client).map(({ options }) => `${options.host}:${options.port}`));
  return client.slots.some(([owner]) => owner !== undefined && !connected.has(owner));
}
