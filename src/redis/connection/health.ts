import { Cluster, type Redis } from 'ioredis';
import { infoField, mastersOf, type RedisClient } from './client.ts';
import { byDigest, replicasNeeded } from './script-loader.ts';

/**
 * Reads from every master that the client is connected to: whether at least one can be read from, and what does not
 * work. Never rejects.
 */
export async function checkHealth(client: RedisClient) {
  const isCluster = client instanceof Cluster;
  const servers = await Promise.allSettled(mastersOf(client).map((server) => probe(server, isCluster)));
  const answers = servers.flatMap((server) => (server.status === 'fulfilled' ? [server.value] : []));
  const masters = answers.filter(({ isReplica }) => !isReplica);
  const isPartial = masters.length < servers.length || lacksMaster(client);
  const isRefused = (reason: RegExp): boolean => answers.some(({ refusal }) => reason.test(refusal));
  const lacksReplicas = masters.some(({ replicas }) => replicas < replicasNeeded(client));
  const isReadOnly = masters.length < answers.length || lacksReplicas || isRefused(/\b(MISCONF|NOREPLICAS) /);
  const faults = [
    ...(answers.length === 0 ? ['store-unavailable'] : []),
    ...(masters.length > 0 && isPartial ? ['store-partly-unavailable'] : []),
    ...(isReadOnly ? ['store-read-only'] : []),
    ...(isRefused(/\bOOM /) ? ['store-full'] : []),
  ];
  return { isReadable: masters.length > 0, faults };
}

const tryToWrite = byDigest("#!lua\nreturn ''");

async function probe(server: Redis, isCluster: boolean) {
  // INFO is answered even while the server is loading its data; a command that reads is not.
  const [info, refusal, state] = await Promise.all([
    server.info('replication'),
    // Redis refuses this wherever it would refuse to write. It is sent as the scripts of requests are: without the
    // permission for EVAL, those that the server knows still run.
    tryToWrite((command, text, rest) => server[command](text, ...rest), [0]).catch(String),
    isCluster ? server.cluster('INFO') : '',
    server.dbsize(),
  ]);
  // DBSIZE concerns no slot, and so is answered by a cluster that is down.
  if (infoField(state, 'cluster_state') === 'fail') throw new Error('the cluster is down');
  // Everything is read by scripts.
  if (/\bNOPERM /.test(String(refusal))) throw new Error('the user may not run scripts');
  return {
    // Replicas are not used: their data may be out of date.
    isReplica: infoField(info, 'role') === 'slave',
    replicas: Number(infoField(info, 'connected_slaves')),
    refusal: String(refusal),
  };
}

/** Whether slots belong to a master that the client has no connection to: `nodes` leaves it out. */
function lacksMaster(client: RedisClient): boolean {
  if (!(client instanceof Cluster)) return false;
  const connected = new Set(mastersOf(client).map(({ options }) => `${options.host}:${options.port}`));
  return client.slots.some(([owner]) => owner !== undefined && !connected.has(owner));
}
