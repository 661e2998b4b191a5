import { readFileSync } from 'node:fs';

/** A script as it is sent to Redis, and how to call it. */
export interface Source {
  lua: string;
  isJson: boolean;
  isOfOrganization: boolean;
  readsMaster: boolean;
  waits: boolean;
}

/**
 * Reads the script of a file, given by its path below lua/ without the extension; the result puts it together, after
 * lua/lib/store.lua. A file begins with its `#!lua` line (README.md). Then follow, where they apply, in this order:
 *
 *     -- @wait replicas   it is answered once as many replicas have the write as `waitForReplicas` says
 *     -- @read master     it only reads, but is not flagged `no-writes`, so that a replica refuses it; where a master
 *                         takes no writes, it is run again with that flag
 *     -- @key any         KEYS[1] is a key outside every organization, and the only one
 *     -- @reply json      the reply travels as one JSON text, which is read in a third of the time
 *     -- @include NAME…   prepends lua/lib/NAME.lua, each file once, after what it includes itself
 */
export function readScript(file: string): () => Source {
  const text = readLua(file);
  const parts = [store, ...includes(text, new Set(['store']))];
  return () => {
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
  };
}

const store = readLua('lib/store');

/** What a file includes; each part follows those that it needs. */
function includes(text: string, seen: Set<string>): string[] {
  const parts: string[] = [];
  for (const name of directive(text, 'include')?.split(' ') ?? []) {
    if (seen.has(name)) continue;
    seen.add(name);
    const part = readLua(`lib/${name}`);
    parts.push(...includes(part, seen), part);
  }
  return parts;
}

/** A function of a part: its `end` is either on the same line or on a line by itself. */
const definition = /^local function (\w+)\((?:.* end|(?!.* end$).*(?:\n(?!end$).*)*\nend)\n/gm;

/** Leaves out unused functions: Redis creates each function again whenever it runs the script. */
function withoutUnused(parts: string, body: string): string {
  const uses = new Map<string, number>();
  const code = (parts + body).replace(/--.*/g, '');
  for (const [word] of code.matchAll(/\w+/g)) uses.set(word, (uses.get(word) ?? 0) + 1);
  const fewer = parts.replace(definition, (text, name: string) => (uses.get(name) === 1 ? '' : text));
  // What only they used is now unused, too.
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
