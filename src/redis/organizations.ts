import { defaultSettings, type OrganizationSettings } from '../domain/settings.ts';
import { organizationBase, organizationsKey, settingsKey } from './keys.ts';
import type { Store } from './scripts.ts';
import { readStanding } from './standing.ts';

/**
 * Stores an organization's settings, all but the comparison: changing that means to rebuild the name index
 * (reindex.ts). Creates the organization where it is new. The settings must be free of `settingsFaults`.
 */
export async function saveSettings(
  store: Store,
  prefix: string,
  organizationId: string,
  settings: OrganizationSettings,
): Promise<void> {
  const base = organizationBase(prefix, organizationId);
  const { minLength, maxLength, pattern, objectImageUrlTemplate, requireOwnership } = settings;
  const unset = [
    ...(pattern === undefined ? ['pattern'] : []),
    ...(objectImageUrlTemplate === undefined ? ['template'] : []),
  ];
  // The registry first: an organization it does not know would be missed by everything that walks over all.
  await store.sadd(organizationsKey(prefix), organizationId);
  await store.hsetnx(settingsKey(base), 'comparison', defaultSettings.comparison);
  await store.hset(settingsKey(base), {
    min: minLength,
    max: maxLength,
    ownership: requireOwnership ? '1' : '0',
    ...(pattern !== undefined && { pattern }),
    ...(objectImageUrlTemplate !== undefined && { template: objectImageUrlTemplate }),
  });
  if (unset.length > 0) await store.hdel(settingsKey(base), ...unset);
}

/** The organization's settings; undefined where it does not exist. */
export async function findSettings(
  store: Store,
  prefix: string,
  organizationId: string,
): Promise<OrganizationSettings | undefined> {
  const base = organizationBase(prefix, organizationId);
  if ((await store.exists(settingsKey(base))) === 0) return undefined;
  return (await readStanding(store, base)).settings;
}

/** The ids of all organizations, in code-unit order. */
export async function listOrganizations(store: Store, prefix: string): Promise<string[]> {
  return (await store.smembers(organizationsKey(prefix))).sort();
}
