import { readFileSync } from 'node:fs';
import type { RedisClient } from './connection/client.ts';

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
): Client & Commands {
  for (const [name, file] of Object.entries<string>(files)) define(client, name, readScript(file));
  return client as Client & Commands;
}

interface Script {
  lua: string;
  isJson: boolean;
  isOfOrganization: boolean;
  readsMaster: boolean;
}

/**
 * A script of an organization derives its keys from the base, and a cluster sees declared keys only. While a slot
 * moves from one node to another, its keys are on either side; with only the base declared, which never exists, the
 * script would be sent to the new side (ASK) and run there, taking whatever has not arrived yet for absent. So a
 * second key that never exists is declared too: of several keys not all there the new side says TRYAGAIN, and runs
 * nothing.
 */
function define(client: RedisClient, name: string, script: Script): void {
  const { lua, isJson, isOfOrganization, readsMaster } = script;
  if (!isOfOrganization) {
    client.defineCommand(name, { numberOfKeys: 1, lua });
    return;
  }
  // ioredis' pipelines call what was defined, with both keys; everybody else calls the name, with the base.
  const defined = `${name}:`;
  const asRead = `${name}:read`;
  client.defineCommand(defined, { numberOfKeys: 2, lua });
  if (readsMaster) {
    client.defineCommand(asRead, { numberOfKeys: 2, lua: lua.replace(/^#!.*/, '#!lua flags=no-writes') });
  }
  const commands = client as unknown as Record<string, (...parts: unknown[]) => Promise<unknown>>;
  const run = (command: string, base: unknown, rest: unknown[]): Promise<unknown> =>
    (commands[command] as (typeof commands)[string]).call(client, base, `${String(base)}-`, ...rest);
  commands[name] = (base, ...rest) => {
    const reply = readsMaster
      ? run(defined, base, rest).catch((error: unknown) => {
          if (!takesNoWrites.test(String(error))) throw error;
          return run(asRead, base, rest);
        })
      : run(defined, base, rest);
    return isJson ? reply.then((text) => JSON.parse(text as string) as unknown) : reply;
  };
}

/** A master that cannot save its data, or lacks replicas. */
const takesNoWrites = /\b(MISCONF|NOREPLICAS)\b/;

function readScript(file: string): Script {
  const text = read(file);
  const [flags = ''] = text.split('\n', 1);
  const isJson = directive(text, 'reply') === 'json';
  const body = text.slice(flags.length + 1);
  const lines = [flags, ...includes(text, new Set()), ...(isJson ? asJson(body) : [body])];
  return {
    lua: lines.join('\n'),
    isJson,
    isOfOrganization: directive(text, 'key') !== 'any',
    readsMaster: directive(text, 'read') === 'master',
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

const asJson = (body: string): string[] => [
  'local function reply()',
  body,
  'end',
  'return cjson.encode(reply())',
];

function directive(text: string, name: string): string | undefined {
  return new RegExp(`^-- @${name} (.+)$`, 'm').exec(text)?.[1];
}

function read(file: string): string {
  return readFileSync(new URL(`lua/${file}.lua`, import.meta.url), 'utf8');
}
