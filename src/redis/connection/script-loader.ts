import { hash } from 'node:crypto';
import { Redis } from 'ioredis';
import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import type { RedisClient } from './client.ts';
import { readScript, type Source } from './script-source.ts';

/** Runs a script on the client's server. The key is the base of an organization, unless the script says `@key any`. */
export type Script<Arguments extends unknown[], Reply> = (
  client: RedisClient,
  key: string,
  ...rest: Arguments
) => Promise<Reply>;

/**
 * The script of a file (see readScript) as a function. The file is read at once, since an upgrade in place may replace
 * it while this version runs.
 */
export function script<Arguments extends unknown[], Reply>(file: string): Script<Arguments, Reply> {
  const assemble = readScript(file);
  const defined = new WeakMap<RedisClient, RunScript>();
  return (client, key, ...rest) => {
    const run = getOrInsert(defined, client, () => define(client, assemble()));
    // The client writes numbers as text.
    return run(key, rest as string[]) as Promise<Reply>;
  };
}

interface Replicas {
  /** A separate connection, since WAIT delays all commands after it. */
  connection: RedisClient;
  /** How many replicas must have a write before it is answered. */
  count: number;
}

const awaited = new WeakMap<RedisClient, Replicas>();

/** Lets the scripts of a client that say `@wait replicas` wait for them; to be called before any of them is run. */
export function waitForReplicas(client: RedisClient, replicas: Replicas): void {
  awaited.set(client, replicas);
}

/** How many replicas must have a write of this client before it is answered. */
export function replicasNeeded(client: RedisClient): number {
  return awaited.get(client)?.count ?? 0;
}

type RunScript = (key: string, given: readonly string[]) => Promise<unknown>;

function define(client: RedisClient, source: Source): RunScript {
  const { lua, isJson, readsMaster, waits } = source;
  const replicas = waits ? awaited.get(client) : undefined;
  let run = replicas === undefined ? runner(client, source) : confirming(replicas, source);
  if (readsMaster) {
    const asRead = { ...source, lua: lua.replace(/^#!.*/, '#!lua flags=no-writes') };
    run = readingMaster(run, runner(client, asRead));
  }
  if (!isJson) return run;
  return (key, rest) => run(key, rest).then((text) => JSON.parse(text as string) as unknown);
}

/** Sends a script, with the number of its keys, the keys and the arguments. */
type Send = (
  command: 'evalsha' | 'eval',
  script: string,
  rest: readonly [keys: number, ...string[]],
) => Promise<unknown>;

/**
 * Sends a script by its digest, or in full if the server does not know it yet, which then has not run it. Not by
 * `defineCommand`: an automatic pipeline that was begun before lacks that command, and gives the replies of all that
 * follows to the wrong callers.
 */
export function byDigest(lua: string): (send: Send, rest: Parameters<Send>[2]) => Promise<unknown> {
  const digest = hash('sha1', lua);
  return (send, rest) =>
    send('evalsha', digest, rest).catch((error: unknown) => {
      if (!/\bNOSCRIPT\b/.test(String(error))) throw error;
      return send('eval', lua, rest);
    });
}

/**
 * Of an organization two keys are declared, its base and another, neither of which exists. While a slot moves from one
 * node of a cluster to another, its keys are on either side. With the base alone, the script would be sent to the new
 * side (ASK) and take what has not arrived yet for absent. Of two keys the new side says TRYAGAIN, and runs nothing.
 */
function sending({ lua, isOfOrganization }: Source, send: Send): RunScript {
  const run = byDigest(lua);
  return (key, given) => run(send, isOfOrganization ? [2, key, `${key}-`, ...given] : [1, key, ...given]);
}

function runner(client: RedisClient, source: Source): RunScript {
  const gather = gathererOf(client);
  return sending(source, (command, text, rest) => {
    gather();
    return client[command](text, ...rest);
  });
}

/** Calls that leave in one write at most. */
const maxCallsPerWrite = 16;

const gatherers = new WeakMap<RedisClient, () => void>();

/**
 * To be called before each call: lets those of one turn of the event loop leave together, so many at a time that Redis
 * works on the first while this process makes the next ones. The client's own auto-pipelining is slower: it needs more
 * promises, sends all of a turn at once, and nothing while a batch is unanswered. A cluster has its own connections.
 */
export function gathererOf(client: RedisClient): () => void {
  return getOrInsert(gatherers, client, () => (client instanceof Redis ? createGatherer(client) : () => {}));
}

function createGatherer(client: Redis): () => void {
  let corked: unknown;
  let held = 0;
  return () => {
    if (client.status !== 'ready') return;
    const socket = client.stream;
    if (corked !== socket) {
      corked = socket;
      held = 0;
      socket.cork();
      setImmediate(() => {
        corked = undefined;
        socket.uncork();
      });
    } else if (held === maxCallsPerWrite) {
      held = 0;
      socket.uncork();
      socket.cork();
    }
    held += 1;
  };
}

/** A master that cannot save its data, or lacks replicas, still serves reads. */
function readingMaster(asWrite: RunScript, asRead: RunScript): RunScript {
  return (key, rest) =>
    asWrite(key, rest).catch((error: unknown) => {
      if (!/\b(MISCONF|NOREPLICAS)\b/.test(String(error))) throw error;
      return asRead(key, rest);
    });
}

/** How long a write waits for its replicas, in ms: less than a command may take. */
const replicaTimeout = 1000;

function confirming({ connection, count }: Replicas, source: Source): RunScript {
  return sending(source, async (command, text, rest) => {
    const pipeline = connection.pipeline()[command](text, ...rest);
    const [reply, wait] = (await pipeline.wait(count, replicaTimeout).exec()) ?? [];
    if (reply?.[0]) throw reply[0];
    if (wait?.[0]) throw wait[0];
    if (Number(wait?.[1]) < count) {
      throw new Error(`NOREPLICAS the write is on ${String(wait?.[1])} of ${count} replicas`);
    }
    return reply?.[1];
  });
}
