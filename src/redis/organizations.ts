import { defaultSettings, type OrganizationSettings } from '../domain/settings.ts';
import { inBatches } from '../lib/collections/batches.ts';
import { yieldingChunks } from '../lib/time-slices.ts';
import {
  apiKeyIdsKey,
  auditKey,
  claimsKey,
  denylistKey,
  generationOf,
  loadingKey,
  localWritesKey,
  objectsKey,
  organizationBase,
  organizationsKey,
  settingsKey,
} from './keys.ts';
import type { RedisClient } from './connection/client.ts';
import { recordLayout } from './layout.ts';
import { scanKeys } from './connection/scan.ts';
import { script } from './connection/script-loader.ts';
import { readWriteSnapshot } from './changes.ts';

const register = script<[id: string], null>('organization/register');

const save = script<(string | number)[], 'created' | 'changed' | 'min-above-max' | 'loading'>(
  'organization/save_settings',
);

/**
 * Changes only the given settings, or creates the organization. The comparison of an existing one stays as it is
 * (reindex/ changes it). The settings must be free of `settingsFaults`; a pattern or template that is undefined or
 * empty is unset. Nothing was changed if a concurrent change led to `min-above-max`, or a migration is `loading` it.
 */
export async function saveSettings(
  store: RedisClient,
  prefix: string,
  organizationId: string,
  { comparison = defaultSettings.comparison, ...given }: Partial<OrganizationSettings>,
): Promise<'created' | 'changed' | 'min-above-max' | 'loading'> {
  const base = organizationBase(prefix, organizationId);
  // If the load is rolled back, a registered organization would be left without settings.
  if ((await store.exists(loadingKey(base))) > 0) return 'loading';
  await registerOrganization(store, prefix, organizationId);
  return await save(
    store,
    base,
    comparison,
    defaultSettings.minLength,
    defaultSettings.maxLength,
    ...Object.entries(given).flatMap(([name, value]) => [
      fields[name as keyof typeof given],
      typeof value === 'boolean' ? Number(value) : (value ?? ''),
    ]),
  );
}

/** Must come before anything is stored for it: scans of all organizations would miss it. */
export async function registerOrganization(store: RedisClient, prefix: string, id: string): Promise<void> {
  await recordLayout(store, prefix);
  await register(store, organizationsKey(prefix), id);
}

/** Those of these organizations that the registry does not have, so that whatever goes through all of them misses them. */
export async function findUnregistered(
  store: RedisClient,
  prefix: string,
  ids: Iterable<string>,
): Promise<string[]> {
  const missing: string[] = [];
  for (const some of inBatches(ids, { size: 1000 })) {
    const found = await store.smismember(organizationsKey(prefix), some);
    missing.push(...some.filter((_, position) => found[position] === 0));
  }
  return missing;
}

/** Where each setting is stored; README.md has the table. */
const fields = {
  minLength: 'min',
  maxLength: 'max',
  pattern: 'pattern',
  objectImageUrlTemplate: 'template',
  requireOwnership: 'ownership',
} as const;

/** Whether an organization exists, or is being loaded by a migration, which writes its settings last. */
export async function organizationExists(store: RedisClient, base: string): Promise<boolean> {
  return (await store.exists(settingsKey(base), loadingKey(base))) > 0;
}

/** Whether there are names of an organization that has lost its settings: they would not count once it is made anew. */
export async function hasOrphanedNames(store: RedisClient, base: string): Promise<boolean> {
  if (await organizationExists(store, base)) return false;
  // To look for names takes a scan of all keys, which a new organization does not need.
  const ofUse = [claimsKey(base), apiKeyIdsKey(base), localWritesKey(base), auditKey(base)];
  if ((await store.exists(...ofUse)) === 0) return false;
  for await (const keys of scanKeys(store, base)) {
    if (keys.some((key) => generationOf(base, key) !== undefined)) return true;
  }
  return false;
}

/** The organization's settings; undefined if it does not exist. */
export async function findSettings(
  store: RedisClient,
  prefix: string,
  organizationId: string,
): Promise<OrganizationSettings | undefined> {
  const base = organizationBase(prefix, organizationId);
  if ((await store.exists(settingsKey(base))) === 0) return undefined;
  return (await readWriteSnapshot(store, base)).settings;
}

/** The ids of all organizations, in code-unit order. */
export async function listOrganizations(store: RedisClient, prefix: string): Promise<string[]> {
  return (await store.smembers(organizationsKey(prefix))).sort();
}

/** The ids of all organizations, at most 100 at a time: what is asked of each of them can be asked at once. */
export async function* organizationsInBatches(store: RedisClient, prefix: string): AsyncGenerator<string[]> {
  yield* yieldingChunks(await store.smembers(organizationsKey(prefix)), 100);
}

/** How much an organization holds, as far as Redis can count it at once. */
export async function countHoldings(store: RedisClient, base: string) {
  const { index } = await readWriteSnapshot(store, base);
  const [deniedUsernames, objects, apiKeys] = await Promise.all([
    store.hlen(denylistKey(base, index)),
    store.hlen(objectsKey(base)),
    store.hlen(apiKeyIdsKey(base)),
  ]);
  return { deniedUsernames, objects, apiKeys };
}
