import { normalizedName } from '../../../src/domain/usernames.ts';
import { namesBucketKey, organizationBase, profileKey, settingsKey } from '../../../src/redis/keys.ts';
import { scanKeys } from '../../../src/redis/connection/scan.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';

/** Everything that an organization holds, without times and internal state of tools. */
export interface Contents {
  /** User → username. */
  usernames: Record<string, string>;
  /** Normalized name → user, from the generation of the name index that is in force. */
  index: Record<string, string>;
  /** Normalized name → name. */
  denied: Record<string, string>;
  settings: Record<string, string>;
  /** Everything else, by key: API keys, objects, collections, the other fields of profiles. */
  rest: Record<string, unknown>;
}

/** Fields that say when, or how far a tool is. */
const passing = new Set(['t', 'b', 'index', 'building', 'frozen', 'epoch', 'audited']);
/** Keys that no client can see: who wrote what, what is about to expire, what a dead tool has left. */
const internal = /^(?:audit|local-writes|claims|here|reindex|media|stage.*|n\d+:\d+|d\d+|use:.*|rate:.*)$/;

/** Reads an organization's keys as the table in src/redis/README.md has them. */
export async function readContents(
  store: RedisClient,
  prefix: string,
  organizationId: string,
): Promise<Contents> {
  const base = organizationBase(prefix, organizationId);
  const all = await store.hgetall(settingsKey(base));
  const generation = all['index'] ?? '0';
  const contents: Contents = {
    usernames: {},
    index: {},
    denied: {},
    settings: lasting(all, /^n\d+$/),
    rest: {},
  };
  const profiles = profileKey(base, '');
  for (const key of await keysOf(store, base)) {
    const name = key.slice(base.length);
    if (key.startsWith(namesBucketKey(base, generation, ''))) {
      Object.assign(contents.index, await store.hgetall(key));
    } else if (name === `d${generation}`) {
      for (const [normalized, given] of Object.entries(await store.hgetall(key))) {
        contents.denied[normalized] = given === '' ? normalized : given;
      }
    } else if (key.startsWith(profiles)) {
      const { u: username, ...fields } = lasting(await store.hgetall(key));
      if (username !== undefined) contents.usernames[key.slice(profiles.length)] = username;
      contents.rest[name] = fields;
    } else if (name !== 'settings' && !internal.test(name)) {
      contents.rest[name] =
        (await store.type(key)) === 'set'
          ? (await store.smembers(key)).sort()
          : lasting(await store.hgetall(key));
    }
  }
  return contents;
}

function lasting(fields: Record<string, string>, more?: RegExp): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).filter(([name]) => !passing.has(name) && more?.test(name) !== true),
  );
}

async function keysOf(store: RedisClient, start: string): Promise<string[]> {
  const found = new Set<string>();
  for await (const keys of scanKeys(store, start)) for (const key of keys) found.add(key);
  return [...found];
}

/** Violations of what must hold at every instant: index and profiles agree, and each name has one user. */
export function brokenInvariants({ usernames, index, settings }: Contents): string[] {
  const comparison = settings['comparison'] === 'case-insensitive' ? 'case-insensitive' : 'exact';
  const broken: string[] = [];
  const holders = new Map<string, string>();
  for (const [user, username] of Object.entries(usernames)) {
    const normalized = normalizedName(username, comparison);
    const other = holders.get(normalized);
    if (other !== undefined) broken.push(`${user} and ${other} are both called ${username}`);
    holders.set(normalized, user);
    if (index[normalized] !== user)
      broken.push(`${user} is called ${username}, which the index gives to ${index[normalized] ?? 'nobody'}`);
  }
  for (const [normalized, user] of Object.entries(index)) {
    if (!holders.has(normalized))
      broken.push(`the index has ${normalized} for ${user}, who is called ${usernames[user] ?? 'nothing'}`);
  }
  return broken;
}

/** Copies all keys with a prefix to another one, with their time to live. */
export async function copyKeys(store: RedisClient, from: string, to: string): Promise<void> {
  for (const key of await keysOf(store, from)) {
    const [data, left] = [await store.dumpBuffer(key), await store.pttl(key)];
    if (data !== null) await store.restore(to + key.slice(from.length), Math.max(0, left), data);
  }
}
