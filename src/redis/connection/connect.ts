import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import type { Log } from '../../log.ts';
import { type ClientOptions, createClient, infoField, mastersOf, type RedisClient } from './client.ts';
import { checkRequirements } from './requirements.ts';
import { parseRedisUrl, type RedisAddress } from './url.ts';

export interface ConnectOptions extends Partial<ClientOptions> {
  /** Gets an entry when the store is lost, and one when it is back. */
  log?: Log | undefined;
  /** Accept a store that may evict keys. */
  allowEviction?: boolean;
  /** How long to wait at start for a store that is unavailable or still loading, in ms. Default 5000. */
  startTimeout?: number;
  /** Ends the waiting at start, with its reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Connects to the store named by `url` (see parseRedisUrl) and checks that it, or every master of a cluster, meets the
 * requirements (see checkRequirements). Close the client by `closeRedis`. Rejects with an Error of one line with the
 * remedy, without passwords.
 *
 * A lost connection is reopened for as long as it takes; meanwhile every command fails at once, with an error that
 * isStoreUnavailable recognizes. Nothing is queued or sent twice, so a write that failed does not happen later. A
 * command without an answer fails after `commandTimeout` (default 1500 ms), in a cluster after twice that at most.
 * Blocking commands (BLPOP, XREAD BLOCK) would delay all others.
 */
export async function connectRedis(url: string, options: ConnectOptions = {}): Promise<RedisClient> {
  const address = parseRedisUrl(url);
  const client = createClient(address, { ...options, commandTimeout: options.commandTimeout ?? 1500 });
  const { startTimeout = 5000, signal } = options;
  const end = performance.now() + startTimeout;
  try {
    await untilReady(client, end, signal);
    await inspect(client, address, options, end);
  } catch (error) {
    client.disconnect();
    signal?.throwIfAborted();
    throw error instanceof UnsupportedStoreError ? error : unreachable(address, error);
  }
  if (options.log !== undefined) reportOutages(client, address, options.log);
  return client;
}

/** Waits for the answers to what was sent, then disconnects; at once when the store is unavailable. Never rejects. */
export async function closeRedis(client: RedisClient): Promise<void> {
  // Where it is lost meanwhile, there is nothing more to wait for.
  if (client.status === 'ready') await client.quit().catch(() => {});
  client.disconnect();
}

const unavailableReplies =
  /^(ASK|BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|MOVED|NOAUTH|NOREPLICAS|OOM|OUTDATED|READONLY|TRYAGAIN|WRONGPASS) /;
/** Replies to a user who lacks a permission; within a script Redis 7.0 says the first, Redis 7.2 and Valkey the second. */
export const permissionRefused =
  /^(NOPERM |ERR The user executing the script can't |ERR ACL failure in script: )/;
const unavailableMessages =
  /^(Connection is closed|connect ETIMEDOUT|Command timed out|Socket timeout|Stream isn't writeable|Cluster isn't ready|Cluster is (ended|disconnect)|None of startup nodes|Failed to refresh slots cache|Too many Cluster redirections|All sentinels are unreachable|Command aborted due to connection close|Reached the max retries|All keys in the pipeline should belong)/;
const unavailableCodes =
  /^(EAI_AGAIN|ECONNABORTED|ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EPIPE|ETIMEDOUT)$/;

/**
 * Whether this error of a command means that the store is unavailable, too slow, full, or takes no writes at the
 * moment, or that its user has lost a permission (problem `store-unavailable`). The write has not happened, or, if the
 * connection broke, may have happened.
 */
export function isStoreUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (code !== undefined && unavailableCodes.test(code)) return true;
  if (code === 'ENOENT' && syscall === 'connect') return true;
  return [unavailableReplies, permissionRefused, unavailableMessages].some((known) => known.test(message));
}

const refusedCredentials = /^(WRONGPASS|NOAUTH|NOPERM|ERR AUTH)/;

/** Resolves once the client is ready; rejects at the deadline, or at once if waiting cannot help or is aborted. */
async function untilReady(client: RedisClient, end: number, signal?: AbortSignal): Promise<void> {
  let last = new Error('no answer');
  const isHopeless = (): boolean => refusedCredentials.test(lastNodeErrorOf(last).message);
  client.on('error', (error: Error) => {
    if (!isHopeless()) last = error;
  });
  // A failure is reported by the error event, and tried again.
  client.connect().catch(() => {});
  const isReady = (): boolean => client.status === 'ready';
  while (!isReady()) {
    if (signal?.aborted === true || isHopeless()) throw last;
    if (performance.now() > end) {
      const reason = (await isLoading(client)) ? new Error('it is loading its data') : last;
      // It may have become ready while it was asked.
      if (!isReady()) throw reason;
    }
    await sleep(5);
  }
}

/** Whether the server says so; one that says nothing gets half a second. */
async function isLoading(client: RedisClient): Promise<boolean> {
  const silence = sleep(500, '', { ref: false });
  const info = await Promise.race([client.info('persistence').catch(() => ''), silence]);
  return infoField(info, 'loading') === '1';
}

class UnsupportedStoreError extends Error {}

/** Throws an UnsupportedStoreError where a master cannot serve the bridge. */
async function inspect(
  client: RedisClient,
  address: RedisAddress,
  { allowEviction = false, log }: ConnectOptions,
  end: number,
): Promise<void> {
  const cluster = client instanceof Cluster;
  for (const { node, info } of await askMasters(client, end)) {
    const where = cluster ? `${node.options.host}:${node.options.port}` : address.display;
    const obstacle = checkRequirements(info, `Redis at ${where}`, { cluster, allowEviction });
    if (obstacle !== undefined) throw new UnsupportedStoreError(obstacle);
    if (infoField(info, 'aof_enabled') === '0') {
      log?.warn(
        'this Redis keeps no append-only file: a crash loses what was written since its last snapshot, or everything where it takes none; set appendonly yes',
        { store: where },
      );
    }
  }
}

/**
 * The INFO of each master. A cluster is ready before each of its masters is: one that is away may have a replica that
 * takes over by `end`; if not, it is left out, since the others can serve.
 */
async function askMasters(client: RedisClient, end: number): Promise<{ node: Redis; info: string }[]> {
  const ask = async (node: Redis) => {
    const silence = sleep(Math.max(end - performance.now(), 1500), undefined, { ref: false });
    const info = await Promise.race([node.info(), silence]);
    if (info === undefined) throw new Error('Command timed out');
    return { node, info };
  };
  for (;;) {
    const replies = await Promise.allSettled(mastersOf(client).map(ask));
    const answers = replies.flatMap((reply) => (reply.status === 'fulfilled' ? [reply.value] : []));
    const failures = replies.flatMap((reply) => (reply.status === 'rejected' ? [reply.reason as Error] : []));
    const lasting = failures.find(
      (error) => !isStoreUnavailable(error) || refusedCredentials.test(error.message),
    );
    if (lasting !== undefined) throw lasting;
    const isOver = performance.now() > end;
    if (failures.length === 0 || (isOver && answers.length > 0)) return answers;
    if (isOver) throw failures[0];
    await sleep(100);
  }
}

/** Of a cluster, the error of the node that was asked last. */
function lastNodeErrorOf(error: unknown): NodeJS.ErrnoException {
  return (error as { lastNodeError?: NodeJS.ErrnoException }).lastNodeError ?? (error as Error);
}

function unreachable(address: RedisAddress, cause: unknown): Error {
  const { reason, remedy = 'start it, or correct REDIS_URL' } = diagnose(address, cause);
  return new Error(`Redis at ${address.display} cannot be used (${reason}): ${remedy}`);
}

/** Why Redis cannot be used, in one line, and the remedy if one is known. */
function diagnose(
  { display }: RedisAddress,
  cause: unknown,
): { reason: string; remedy?: string | undefined } {
  const { message, code } = lastNodeErrorOf(cause);
  // An AggregateError, of several addresses tried, has a code only.
  const reason = message === '' ? (code ?? 'no answer') : message.replaceAll('\n', ' ');
  const [scheme] = display.split(':', 1);
  const remedy = remedies.find(([pattern]) => pattern.test(`${scheme} ${code ?? ''} ${reason}`))?.[1];
  return { reason: reason.replace(notRedis, ''), remedy };
}

/** What the client adds to what it cannot parse, as from an HTTP server. */
const notRedis = /\. Please report this\.$/;

const remedies: [RegExp, remedy: string][] = [
  [notRedis, 'what answers there is not Redis: correct REDIS_URL'],
  [/is loading/, 'wait until that is done'],
  [/NOPERM/, 'give the user the permissions that src/redis/README.md lists under "Permissions"'],
  [/max number of clients/, 'raise its maxclients, or end other clients'],
  [/cluster support disabled/, 'it is not a node of a cluster: write redis:// or rediss://'],
  [/unknown command 'sentinel'/, 'it is not a sentinel: write redis:// or rediss://'],
  [
    /^rediss.*ECONNRESET/,
    'start it, set REDIS_CERT_FILE to a certificate that the server accepts, or write redis:// if it does not speak TLS',
  ],
  [/ECONNRESET/, 'start it, or write rediss:// if it speaks TLS'],
  [/^rediss.*ETIMEDOUT/, 'start it, correct REDIS_URL, or write redis:// if it does not speak TLS'],
  [/No such master/, "end REDIS_URL with the master's name, as its sentinels know it"],
  [/WRONGPASS|NOAUTH|ERR AUTH/, 'correct the user or password in REDIS_URL'],
  [
    /SELF_SIGNED_CERT|UNABLE_TO_(VERIFY|GET)/,
    'set REDIS_CA_FILE to the certificate of the authority that signed the one of the server',
  ],
  [/CERT_HAS_EXPIRED/, "renew the server's certificate"],
  [/CERT_ALTNAME_INVALID/, 'name the host in REDIS_URL as the certificate does'],
  [/alert certificate required|alert number 116/i, 'set REDIS_CERT_FILE and REDIS_KEY_FILE'],
  [/alert number 4[2-8]/i, 'set REDIS_CERT_FILE to a certificate that the server accepts'],
  [
    /wrong version number|WRONG_VERSION_NUMBER/i,
    'the server does not speak TLS: write redis:// instead of rediss://',
  ],
];

function reportOutages(client: RedisClient, address: RedisAddress, log: Log): void {
  const { display } = address;
  let away = false;
  let reason: string | undefined;
  client.on('error', (error: Error) => {
    const found = diagnose(address, error);
    // Such as a password that is refused from now on; not that nothing answers.
    const isAnswered = !/^E[A-Z]+$/.test(lastNodeErrorOf(error).code ?? '');
    if (away && isAnswered && found.reason !== reason)
      log.warn('store cannot be used', { store: display, ...found });
    ({ reason } = found);
  });
  client.on('reconnecting', () => {
    if (!away) log.warn('store lost, reconnecting', { store: display, reason });
    away = true;
  });
  client.on('ready', () => {
    if (away) log.info('store is back', { store: display });
    away = false;
    reason = undefined;
  });
}
