import type { RedisClient } from './client.ts';
import { readScript, type Source } from './script-source.ts';

/** Runs a script on the client's server. The key is the base of an organization, unless the script says `@key any`. */
export type Script<Arguments extends unknown[], Reply> = (
  client: RedisClient,
  key: string,
  ...rest: Arguments
) => Promise<Reply>;

/**
 * The script of a file (see readScript) as a function. It is read at once, since an upgrade in place may replace the
 * file while this version runs, and put together when a client first runs it.
 */
export function script<Arguments extends unknown[], Reply>(file: string): Script<Arguments, Reply> {
  const assemble = readScript(file);
  const defined = new WeakMap<RedisClient, Run>();
  return (client, key, ...rest) => {
    let run = defined.get(client);
    if (run === undefined) {
      run = define(client, file, assemble());
      defined.set(client, run);
    }
    return run(key, rest) as Promise<Reply>;
  };
}

interface Replicas {
  /** A connection of its own, since WAIT delays all commands after it. */
  connection: RedisClient;
  /** How many replicas must have a write before it is answered. */
  count: number;
}

const awaited = new WeakMap<RedisClient, Replicas>();

/** Lets the scripts of a client that say `@wait replicas` wait for them; to be called before any of them is run. */
export function waitForReplicas(client: RedisClient, replicas: Replicas): void {
  awaited.set(client, replicas);
}

type Run = (key: string, rest: readonly unknown[]) => Promise<unknown>;

/** A command of ioredis. In a client it sends itself; in a pipeline it is sent with the others. */
type Command = (...parts: unknown[]) => Promise<unknown>;

function define(client: RedisClient, file: string, source: Source): Run {
  const { lua, isJson, readsMaster, waits } = source;
  const replicas = waits ? awaited.get(client) : undefined;
  let run = replicas === undefined ? runner(client, file, source) : confirming(replicas, file, source);
  if (readsMaster) {
    const readOnly = { ...source, lua: lua.replace(/^#!.*/, '#!lua flags=no-writes') };
    run = readingMaster(run, runner(client, `${file}:read`, readOnly));
  }
  if (!isJson) return run;
  return (key, rest) => run(key, rest).then((text) => JSON.parse(text as string) as unknown);
}

/**
 * A script of an organization derives its keys from the base, and a cluster sees declared keys only. While a slot
 * moves from one node to another, its keys are on either side; with only the base declared, which never exists, the
 * script would be sent to the new side (ASK) and run there, treating whatever has not arrived yet as absent. So a
 * second key that never exists is declared too: of several keys not all there the new side says TRYAGAIN, and runs
 * nothing.
 */
function keysOf(key: string, { isOfOrganization }: Source): string[] {
  return isOfOrganization ? [key, `${key}-`] : [key];
}

function addCommand(client: RedisClient, name: string, source: Source): void {
  client.defineCommand(name, { numberOfKeys: keysOf('', source).length, lua: source.lua });
}

function runner(client: RedisClient, name: string, source: Source): Run {
  addCommand(client, name, source);
  const command = (client as unknown as Record<string, Command>)[name] as Command;
  return (key, rest) => {
    const keys = keysOf(key, source);
    return command.call(client, ...keys, ...rest).catch((error: unknown) => {
      // It was redirected to a node that does not know the script yet, and has not run.
      if (!/\bNOSCRIPT\b/.test(String(error))) throw error;
      return client.eval(source.lua, keys.length, ...keys, ...(rest as string[]));
    });
  };
}

/** A master that cannot save its data, or lacks replicas, is still read from. */
function readingMaster(asWrite: Run, asRead: Run): Run {
  return (key, rest) =>
    asWrite(key, rest).catch((error: unknown) => {
      if (!/\b(MISCONF|NOREPLICAS)\b/.test(String(error))) throw error;
      return asRead(key, rest);
    });
}

/** How long a write waits for its replicas, in ms: less than a command may take. */
const replicaTimeout = 1000;

function confirming({ connection, count }: Replicas, name: string, source: Source): Run {
  addCommand(connection, name, source);
  return async (key, rest) => {
    const pipeline = connection.pipeline();
    const command = (pipeline as unknown as Record<string, Command>)[name];
    void command?.call(pipeline, ...keysOf(key, source), ...rest);
    const [reply, wait] = (await pipeline.wait(count, replicaTimeout).exec()) ?? [];
    if (reply?.[0]) throw reply[0];
    if (wait?.[0]) throw wait[0];
    if (Number(wait?.[1]) < count) {
      throw new Error(`NOREPLICAS the write is on ${String(wait?.[1])} of ${count} replicas`);
    }
    return reply?.[1];
  };
}
