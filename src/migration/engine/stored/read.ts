import { decodeReference } from '../../../domain/profile.ts';
import { pairsOf } from '../../../lib/collections/pairs.ts';
import { apiKeyKey, denylistKey, objectsKey } from '../../../redis/keys.ts';
import { splitCollectionIdentity } from '../../analysis/identity.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { apiKeyRecord, organizationRecord, profileRecord } from '../../records/stored.ts';
import type { MigrationContext } from '../../context/context.ts';
import type { Organization } from '../../context/organizations.ts';
import { migrateReadProfiles } from '../scripts.ts';

/** Reads profiles as they are stored, each with the user whom the name index has for a normalized name ('' for none). */
export async function readProfiles(
  { store }: MigrationContext,
  { base, index }: Organization,
  rows: readonly (readonly [userId: string, normalizedName: string])[],
) {
  const found: [fields: string[], holder: string | null][] = [];
  // Wide profiles come some at a time.
  while (found.length < rows.length)
    found.push(...(await migrateReadProfiles(store, base, index, JSON.stringify(rows.slice(found.length)))));
  return found.map(([fields, holder]) => ({ stored: new Map(pairsOf(fields)), holder: holder ?? undefined }));
}

type ReadStored<E extends Entity> = (
  context: MigrationContext,
  organization: Organization,
  keys: readonly string[],
) => Promise<(RecordOf[E] | undefined)[]>;

/** Reads records of an organization by their keys (identityOf), in the same order; undefined for one that is not there. */
export const readRecords: { readonly [E in Entity]: ReadStored<E> } = {
  organizations: async (_, { id, settings }, keys) => keys.map(() => organizationRecord(id, settings)),
  'api-keys': async ({ store }, { id, base }, hashes) =>
    await Promise.all(
      hashes.map(async (hash) => {
        const stored = await store.hgetall(apiKeyKey(base, hash));
        return stored['i'] === undefined ? undefined : apiKeyRecord(id, hash, stored);
      }),
    ),
  objects: async ({ store }, { id, base }, references) => {
    const urls = await store.hmget(objectsKey(base), ...references);
    return references.map((reference, position) => {
      const url = urls[position] ?? undefined;
      return url === undefined ? undefined : { organizationId: id, ...decodeReference(reference), url };
    });
  },
  collections: async (_, { id }, keys) =>
    keys.map((key) => {
      const [userId, reference] = splitCollectionIdentity(key);
      return { organizationId: id, userId, ...decodeReference(reference) };
    }),
  profiles: async (context, organization, users) => {
    const found = await readProfiles(
      context,
      organization,
      users.map((user) => [user, '']),
    );
    return users.map((user, position) => {
      const stored = found[position]?.stored;
      return stored?.has('t') === true
        ? profileRecord(organization.id, user, stored, context.pictureUrlPrefix)
        : undefined;
    });
  },
  denylist: async ({ store }, { id, base, index }, normalizedNames) => {
    const names = await store.hmget(denylistKey(base, index), ...normalizedNames);
    return normalizedNames.map((normalized, position) => {
      const name = names[position] ?? undefined;
      // Only a spelling that differs from the normalized name is stored.
      return name === undefined ? undefined : { organizationId: id, username: name || normalized };
    });
  },
};
