import { readFileSync } from 'node:fs';
import type { RedisClient } from './client.ts';

/** A command that runs a script. Its key is the base of an organization, unless the script says `@key any`. */
export type ScriptCommand<Arguments extends unknown[], Reply> = (
  key: string,
  ...rest: Arguments
) => Promise<Reply>;

/** The file of each command: its path below lua/, without the extension. */
export type ScriptFiles<Commands> = Record<keyof Commands, string>;

/**
 * Adds commands that run scripts to a client; doing so again changes nothing. A script file begins with its `#!lua`
 * line, which makes the server refuse a key outside the script's slot, writes on a full store, and writes by a script
 * flagged `no-writes`. Then follow, where they apply:
 *
 *     -- @include NAME…   prepends lua/lib/NAME.lua, each file once, after what it includes itself
 *     -- @reply json      the reply travels as one JSON text, which clients read in a third of the time that many
 *                         parts take them; an absent value is `false` in it
 *     -- @key any         KEYS[1] is a key outside every organization, and the only one
 *     -- @read master     it only reads, but is not flagged `no-writes`, so that a server that was demoted to a
 *                         replica refuses it; where a master takes no writes, it is run again with that flag
 */
export function loadScripts<Client extends RedisClient, Commands>(
  client: Client,
  files: ScriptFiles<Commands>,
  confirmed?: ConfirmedWrites,
): Client & Commands {
  for (const [name, file] of Object.entries<string>(files)) {
    // Otherwise writes that wait for replicas would not wait any more.
    if (!Object.hasOwn(client, name)) define(client, name, readScript(file), confirmed);
  }
  return client as Client & Commands;
}

/** Writes use a connection of their own, since WAIT delays all commands after it. */
export interface ConfirmedWrites {
  client: RedisClient;
  /** How many replicas must have a write before it is answered. */
  replicas: number;
}

interface Script {
  lua: string;
  isJson: boolean;
  isOfOrganization: boolean;
  readsMaster: boolean;
  isWrite: boolean;
}

type Run = (base: string, rest: readonly unknown[]) => Promise<unknown>;

/**
 * A script of an organization derives its keys from the base, and a cluster sees declared keys only. While a slot
 * moves from one node to another, its keys are on either side; with only the base declared, which never exists, the
 * script would be sent to the new side (ASK) and run there, treating whatever has not arrived yet as absent. So a
 * second key that never exists is declared too: of several keys not all there the new side says TRYAGAIN, and runs
 * nothing.
 */
function define(client: RedisClient, name: string, script: Script, confirmed?: ConfirmedWrites): void {
  const { lua, isJson, isOfOrganization, readsMaster, isWrite } = script;
  const commands = client as unknown as Record<
    string,
    (base: string, ...rest: unknown[]) => Promise<unknown>
  >;
  if (!isOfOrganization) {
    client.defineCommand(name, { numberOfKeys: 1, lua });
    if (isWrite && confirmed !== undefined) {
      const run = confirming(confirmed, name, lua, 1);
      commands[name] = (key, ...rest) => run(key, rest);
    }
    return;
  }
  const plain = runner(client, `${name}:`, lua);
  const run = readsMaster
    ? readingMaster(plain, runner(client, `${name}:read`, lua.replace(/^#!.*/, '#!lua flags=no-writes')))
    : isWrite && confirmed !== undefined
      ? confirming(confirmed, `${name}:`, lua, 2)
      : plain;
  commands[name] = (base, ...rest) => {
    const reply = run(base, rest);
    return isJson ? reply.then((text) => JSON.parse(text as string) as unknown) : reply;
  };
}

/** Defines the command with both keys, as ioredis' pipelines call it; all other code calls it with the base. */
function runner(client: RedisClient, name: string, lua: string): Run {
  client.defineCommand(name, { numberOfKeys: 2, lua });
  const commands = client as unknown as Record<string, (...parts: unknown[]) => Promise<unknown>>;
  return (base, rest) =>
    (commands[name] as (typeof commands)[string])
      .call(client, base, `${base}-`, ...rest)
      .catch((error: unknown) => {
        // It was redirected to a node that does not know the script yet, and has not run.
        if (!/\bNOSCRIPT\b/.test(String(error))) throw error;
        return client.eval(lua, 2, base, `${base}-`, ...(rest as string[]));
      });
}

/** A master that cannot save its data, or lacks replicas, is still read from. */
function readingMaster(asWrite: Run, asRead: Run): Run {
  return (base, rest) =>
    asWrite(base, rest).catch((error: unknown) => {
      if (!/\b(MISCONF|NOREPLICAS)\b/.test(String(error))) throw error;
      return asRead(base, rest);
    });
}

/** How long a write waits for its replicas, in ms: less than a command may take. */
const waitForReplicas = 1000;

function confirming(
  { client, replicas }: ConfirmedWrites,
  name: string,
  lua: string,
  numberOfKeys: 1 | 2,
): Run {
  client.defineCommand(name, { numberOfKeys, lua });
  return async (base, rest) => {
    const pipeline = client.pipeline();
    const add = (pipeline as unknown as Record<string, (...parts: unknown[]) => unknown>)[name];
    add?.call(pipeline, ...(numberOfKeys === 1 ? [base] : [base, `${base}-`]), ...rest);
    const [script, wait] = (await pipeline.wait(replicas, waitForReplicas).exec()) ?? [];
    if (script?.[0]) throw script[0];
    if (wait?.[0]) throw wait[0];
    if (Number(wait?.[1]) < replicas) {
      throw new Error(`NOREPLICAS the write is on ${String(wait?.[1])} of ${replicas} replicas`);
    }
    return script?.[1];
  };
}

function readScript(file: string): Script {
  const text = read(file);
  const [flags = ''] = text.split('\n', 1);
  const isJson = directive(text, 'reply') === 'json';
  const body = text.slice(flags.length + 1);
  const own = isJson ? asJson(body) : body;
  const parts = withoutUnused(includes(text, new Set()).join('\n'), own);
  return {
    lua: [flags, parts, own].join('\n'),
    isJson,
    isOfOrganization: directive(text, 'key') !== 'any',
    readsMaster: directive(text, 'read') === 'master',
    isWrite: !flags.includes('no-writes'),
  };
}

/** What a file includes, in an order in which each part follows those that it needs. */
function includes(text: string, seen: Set<string>): string[] {
  const parts: string[] = [];
  for (const name of directive(text, 'include')?.split(' ') ?? []) {
    if (seen.has(name)) continue;
    seen.add(name);
    const part = read(`lib/${name}`);
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

function read(file: string): string {
  return readFileSync(new URL(`../lua/${file}.lua`, import.meta.url), 'utf8');
}
