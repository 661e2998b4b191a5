import { Cluster, type Command, Redis } from 'ioredis';
import type { HostPort, RedisAddress } from './url.ts';

export type RedisClient = Redis | Cluster;

export interface ClientOptions {
  /** For rediss:// only, in PEM: the authority of the server's certificate, and the client's own. */
  tls?: { ca?: string | undefined; cert?: string | undefined; key?: string | undefined };
  /** Instead of the URL's. */
  password?: string | undefined;
  /** How long one command may take, in ms; also how long a silent connection is kept. */
  commandTimeout: number;
}

/** The connections to every master: in a cluster the current ones, otherwise the only one. */
export function mastersOf(client: RedisClient): Redis[] {
  return client instanceof Cluster ? client.nodes('master') : [client];
}

/** A field of an INFO reply; undefined where the server does not have it. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1];
}

/** What each master says of its replication, for `infoField`. */
export async function replicationOf(client: RedisClient): Promise<string[]> {
  return await Promise.all(mastersOf(client).map((master) => master.info('replication')));
}

/**
 * The replication IDs of all masters: one that has taken over from another server, or was started again, has a new one,
 * and may lack what was written last.
 */
export async function replicationIdsOf(client: RedisClient): Promise<string> {
  const infos = await replicationOf(client);
  return infos
    .map((info) => infoField(info, 'master_replid') ?? '')
    .sort()
    .join(' ');
}

/** The clock of Redis, in ms: one clock for all instances and tools. */
export async function storeTime(client: RedisClient): Promise<number> {
  const [seconds, microseconds] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

/** Whether a command, or one of a script, has met a key of another type; `key` is undefined for a script's. */
export function wrongTypeOf(error: unknown): { key: string | undefined } | undefined {
  if (!(error instanceof Error) || !error.message.startsWith('WRONGTYPE')) return undefined;
  const { command } = error as { command?: { args: string[] } };
  return { key: error.message.includes('script') ? undefined : command?.args[0] };
}

/** A client that is not connected yet, configured so that no command ever waits for an unavailable store. */
export function createClient(address: RedisAddress, options: ClientOptions): RedisClient {
  const common = commonOptions(address, options);
  return address.kind === 'cluster' ? createCluster(address.nodes, common) : createSingle(address, common);
}

function createSingle(address: Exclude<RedisAddress, { kind: 'cluster' }>, common: CommonOptions): Redis {
  const client = new Redis({
    ...common,
    ...serverOptions(address, common),
    enableOfflineQueue: false,
    // How often to ask a server that is loading its data; by default, ioredis waits for as long as it expects to need.
    maxLoadingRetryTime: 500,
    retryStrategy: backoff,
    reconnectOnError: reconnectFromReplica(),
  });
  keepReconnecting(client);
  return client;
}

/** ioredis gives up for good if a failover is announced while it asks a sentinel for the master's address. */
function keepReconnecting(client: Redis): void {
  const disconnect = client.disconnect.bind(client);
  let isWanted = true;
  client.disconnect = (reconnect = false) => {
    isWanted = reconnect;
    disconnect(reconnect);
  };
  let hasClosed = false;
  client.on('connecting', () => (hasClosed = false));
  // A client that was asked to quit closes its connection before it ends.
  client.on('close', () => (hasClosed = true));
  client.on('end', () => {
    // Not at once: a connection that cannot even be begun ends within the same turn of the event loop.
    setTimeout(() => {
      if (isWanted && !hasClosed) client.connect().catch(() => {});
    }, backoff(1)).unref();
  });
}

/** After a failover the address may lead to the new master; tried again while it does not, every two seconds. */
function reconnectFromReplica(): (error: Error) => boolean {
  const pause = 2000;
  let last = -pause;
  return ({ message }) => {
    if (!message.startsWith('READONLY') || performance.now() - last < pause) return false;
    last = performance.now();
    return true;
  };
}

type CommonOptions = ReturnType<typeof commonOptions>;

function commonOptions(address: RedisAddress, { tls, password, commandTimeout }: ClientOptions) {
  return {
    username: address.username,
    password: password ?? address.password,
    tls: 'tls' in address && address.tls ? (tls ?? {}) : undefined,
    protocol: 2 as const,
    lazyConnect: true,
    disableClientInfo: true,
    autoResendUnfulfilledCommands: false,
    // Otherwise commands in flight on a lost connection would be neither answered nor refused.
    maxRetriesPerRequest: 0,
    connectTimeout: Math.min(commandTimeout, 1500),
    // How long a closed client may keep the process alive.
    disconnectTimeout: 200,
    commandTimeout,
    // A little earlier, so that commands queued behind an unanswered one are refused together with it.
    socketTimeout: commandTimeout - 250,
  };
}

function serverOptions(address: Exclude<RedisAddress, { kind: 'cluster' }>, common: CommonOptions) {
  if (address.kind === 'single') return address.at;
  if (address.kind === 'socket') return { path: address.path };
  return {
    sentinels: address.nodes,
    name: address.name,
    sentinelUsername: address.sentinelUsername,
    sentinelPassword: address.sentinelPassword,
    enableTLSForSentinelMode: address.tls,
    sentinelTLS: common.tls,
    sentinelCommandTimeout: common.commandTimeout,
    sentinelRetryStrategy: backoff,
    failoverDetector: true,
  };
}

const slotsRefreshMs = 2000;

/**
 * ioredis' cluster refuses commands while it connects to a node unless its offline queue is on, which has no bound. So
 * each command has its time limit from the start, and nothing is queued while the whole cluster is unavailable.
 */
function createCluster(nodes: HostPort[], common: CommonOptions): Cluster {
  const cluster = new Cluster(nodes, {
    redisOptions: common,
    lazyConnect: true,
    enableAutoPipelining: true,
    enableOfflineQueue: true,
    clusterRetryStrategy: backoff,
    maxRedirections: 8,
    // While a slot moves, commands to the same node would wait behind it: better a 503 for one organization.
    retryDelayOnTryAgain: 10,
    // Zero: it would send commands in flight on a lost connection a second time.
    retryDelayOnFailover: 0,
  });
  // Not by its slotsRefreshInterval, which goes on for ever if the cluster is closed while a refresh is under way.
  const refreshing = setInterval(() => {
    if (cluster.status === 'ready') cluster.refreshSlotsCache();
  }, slotsRefreshMs).unref();
  cluster.once('end', () => clearInterval(refreshing));
  const send = cluster.sendCommand.bind(cluster);
  cluster.sendCommand = (command: Command, ...rest) => {
    if (command.isSettled) return command.promise;
    if (cluster.status !== 'ready' && command.name !== 'cluster') {
      command.reject(new Error("Cluster isn't ready"));
      return command.promise;
    }
    // Before it is ready, it asks any node for the state of the cluster, perhaps one that stays silent.
    command.setTimeout(cluster.status === 'ready' ? common.commandTimeout : 1000);
    return send(command, ...rest);
  };
  return cluster;
}

const backoff = (attempt: number): number => Math.min(50 * attempt, 1000);
