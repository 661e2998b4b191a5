import { connectRedis } from '../../src/redis/connection/connect.ts';
import { freshPrefix, testRedisUrl } from './redis.ts';
import { defaultSettings, type OrganizationSettings } from '../../src/domain/settings.ts';
import { organizationBase } from '../../src/redis/keys.ts';
import { saveSettings } from '../../src/redis/organizations.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';
import { scanKeys } from '../../src/redis/connection/scan.ts';
import { fsck, type Fault } from '../../src/redis/fsck/fsck.ts';

/** For tests of anything but these limits: only a hang takes so long, on the slowest machine too. */
export const patient = { commandTimeout: 60_000, startTimeout: 60_000 };

/** A client of the run's Redis that knows the scripts. The caller closes it by `closeRedis`. */
export async function openTestStore(url = testRedisUrl()): Promise<RedisClient> {
  return await connectRedis(url, { allowEviction: true, ...patient });
}

/** A new organization by itself under a prefix, with the default settings besides those given. */
export async function newOrganization(
  store: RedisClient,
  settings: Partial<OrganizationSettings> = {},
): Promise<{ prefix: string; base: string }> {
  const prefix = freshPrefix();
  await saveSettings(store, prefix, 'acme', { ...defaultSettings, ...settings });
  return { prefix, base: organizationBase(prefix, 'acme') };
}

/**
 * A client whose calls are made by `onCall`: it gets the command and its arguments, and `make`, which makes the call, on
 * another client if that is given.
 */
export function interceptCalls(
  store: RedisClient,
  onCall: (make: (on?: RedisClient) => Promise<unknown>, command: string, args: unknown[]) => unknown,
): RedisClient {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown =>
        onCall((on = target) => Reflect.apply(value, on, args) as Promise<unknown>, String(name), args);
    },
  });
}

/** All keys that begin with a prefix, on whichever server of a cluster, sorted. */
export async function keysOf(store: RedisClient, prefix: string): Promise<string[]> {
  const found = new Set<string>();
  for await (const keys of scanKeys(store, prefix)) for (const key of keys) found.add(key);
  return [...found].sort();
}

/** The value of each key that begins with a prefix, as Redis dumps it. */
export async function valuesOf(store: RedisClient, prefix: string): Promise<Record<string, string>> {
  const keys = await keysOf(store, prefix);
  const dumps = await Promise.all(keys.map((key) => store.dumpBuffer(key)));
  return Object.fromEntries(keys.map((key, at) => [key, dumps[at]?.toString('base64') ?? '']));
}

/** The faults that fsck finds under a prefix. */
export async function faultsIn(store: RedisClient, prefix: string): Promise<Fault[]> {
  const faults: Fault[] = [];
  await fsck(store, prefix, { repair: false, onFault: (fault) => faults.push(fault) });
  return faults;
}
