import { readFileSync } from 'node:fs';
import type { RedisClient } from './client.ts';

/** Runs a script on the client's server. The key is the base of an organization, unless the script says `@key any`. */
export type Script<Arguments extends unknown[], Reply> = (
  client: RedisClient,
  key: string,
  ...rest: Arguments
) => Promise<Reply>;

/**
 * The script of a file, which is given by its path below lua/, without the extension. It begins with its `#!lua` line,
 * which makes the server refuse a key outside the script's slot, writes on a full store, and writes by a script flagged
 * `no-writes`. Then follow, where they apply:
 *
 *     -- @include NAME…   prepends lua/lib/NAME.lua, each file once, after what it includes itself
 *     -- @reply json      the reply travels as one JSON text, which clients read in a third of the time that many
 *                         parts take them; an absent value is `false` in it
 *     -- @key any         KEYS[1] is a key outside every organization, and the only one
 *     -- @read master     it only reads, but is not flagged `no-writes`, so that a server that was demoted to a
 *                         replica refuses it; where a master takes no writes, it is run again with that flag
 *     -- @wait replicas   it is answered once as many replicas have the write as `waitForReplicas` says
 */
export function script<Arguments extends unknown[], Reply>(file: string): Script<Arguments, Reply> {
  // Read at once: an upgrade in place may replace the file while this version runs.
  const read = readScript(file);
  const defined = new WeakMap<RedisClient, Run>();
  return (client, key, ...rest) => {
    let run = defined.get(client);
    if (run === undefined) {
      run = define(client, file, assemble(read));
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

interface Source {
  lua: string;
  isJson: boolean;
  isOfOrganization: boolean;
  readsMaster: boolean;
  waits: boolean;
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

/** The Lua of a file as Redis gets it. */
export function scriptText(file: string): string {
  return assemble(readScript(file)).lua;
}

/** A script as it is read: its own text, and those of the parts that it includes. */
interface Texts {
  text: string;
  parts: string[];
}

function readScript(file: string): Texts {
  const text = readLua(file);
  return { text, parts: includes(text, new Set()) };
}

function assemble({ text, parts }: Texts): Source {
  const [flags = ''] = text.split('\n', 1);
  const isJson = directive(text, 'reply') === 'json';
  const body = text.slice(flags.length + 1);
  const own = isJson ? asJson(body) : body;
  return {
    lua: [flags, withoutUnused(parts.join('\n'), own), own].join('\n'),
    isJson,
    isOfOrganization: directive(text, 'key') !== 'any',
    readsMaster: directive(text, 'read') === 'master',
    waits: directive(text, 'wait') === 'replicas',
  };
}

const partsRead = new Map<string, string>();

/** What a file includes, in an order in which each part follows those that it needs. */
function includes(text: string, seen: Set<string>): string[] {
  const parts: string[] = [];
  for (const name of directive(text, 'include')?.split(' ') ?? []) {
    if (seen.has(name)) continue;
    seen.add(name);
    const part = partsRead.get(name) ?? readLua(`lib/${name}`);
    partsRead.set(name, part);
    parts.push(...includes(part, seen), part);
  }
  return parts;
}

/** A function of a part: either its `end` is on the same line, or it is a line by itself. */
const definition = /^local function (\w+)\((?:.* end|(?!.* end$).*(?:\n(?!end$).*)*\nend)\n/gm;

/** Leaves out the functions that nothing uses: Redis makes each of them anew whenever it runs the script. */
function withoutUnused(parts: string, body: string): string {
  const uses = new Map<string, number>();
  for (const [word] of (parts + body).matchAll(/\w+/g)) uses.set(word, (uses.get(word) ?? 0) + 1);
  const fewer = parts.replace(definition, (text, name: string) => (uses.get(name) === 1 ? '' : text));
  // What only they used is unused by now.
  return fewer === parts ? parts : withoutUnused(fewer, body);
}

const asJson = (body: string): string =>
  ['local function reply()', body, 'end', 'return cjson.encode(reply())'].join('\n');

function directive(text: string, name: string): string | undefined {
  return new RegExp(`^-- @${name} (.+)$`, 'm').exec(text)?.[1];
}

function readLua(file: string): string {
  return readFileSync(new URL(`../lua/${file}.lua`, import.meta.url), 'utf8');
}
