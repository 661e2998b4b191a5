import { apiKeyKey, denylistKey, objectsKey } from '../../../redis/keys.ts';
import { encodeReference } from '../../../domain/profile.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import {
  apiKeyRecord,
  organizationRecord,
  organizationSettings,
  profileFields,
} from '../../records/stored.ts';
import type { MigrationContext } from '../context.ts';
import { byOrganization, normalizedIn, type Organization } from '../organizations.ts';
import { migrateRead } from '../scripts.ts';
import { pairsOf } from '../../../lib/pairs.ts';

/** A field in which Redis does not agree with the source; undefined for a value that is absent. */
export interface Difference {
  field: string;
  redis: unknown;
  source: unknown;
}

type CompareContext = Pick<MigrationContext, 'store' | 'mediaUrl' | 'organizations'>;

/**
 * Compares records that Redis has with the source, field by field; in the records' order. A profile whose fields
 * agree has one difference where the name index does not lead to its user: that of the field `name index`.
 */
export async function differencesOf<E extends Entity>(
  context: CompareContext,
  entity: E,
  items: readonly { readonly record: RecordOf[E] }[],
): Promise<Difference[][]> {
  return await byOrganization(items, context.organizations, async (organization, records) =>
    (comparers[entity] as Comparer<E>)(context, organization, records),
  );
}

/** Differences as one line for people. */
export function describeDifferences(differences: readonly Difference[]): string {
  return differences
    .map(({ field, redis, source }) => `${field} is ${shown(redis)}, should be ${shown(source)}`)
    .join('; ');
}

/** A value for people. */
export function shown(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}

type Comparer<E extends Entity> = (
  context: CompareContext,
  organization: Organization,
  records: readonly RecordOf[E][],
) => Promise<Difference[][]>;

const compareProfiles: Comparer<'profiles'> = async ({ store, mediaUrl }, organization, records) => {
  const forms = records.map(({ username }) =>
    username === undefined ? '' : normalizedIn(organization, username),
  );
  const rows = records.map(({ userId }, position) => [userId, forms[position]]);
  const found = await migrateRead(store, organization.base, organization.index, JSON.stringify(rows));
  return records.map((record, position) => {
    const [flat = [], holder = null] = found[position] ?? [];
    const differences = profileDifferences(
      new Map(pairsOf(profileFields(record, mediaUrl))),
      new Map(pairsOf(flat)),
    );
    if (differences.length > 0 || forms[position] === '' || holder === record.userId) return differences;
    return [{ field: 'name index', redis: holder ?? undefined, source: record.userId }];
  });
};

/** Stored fields by the names that records have for them. */
const profileNames: Readonly<Record<string, string>> = {
  u: 'username',
  pf: 'profilePictureUrl',
  pu: 'profilePictureUrl',
  pr: 'profilePictureObjectDefinitionId',
  ar: 'avatar',
  au: 'avatar.url',
  w: 'evmWalletAddress (verified)',
  wu: 'evmWalletAddress (not verified)',
  t: 'updatedAt',
};

function profileDifferences(wanted: Map<string, string>, stored: Map<string, string>): Difference[] {
  const copiedFrom = stored.get('po');
  const file = stored.get('pf');
  // A picture that was copied here is the source's.
  if (file !== undefined && copiedFrom !== undefined && wanted.get('pu') === copiedFrom) {
    wanted.delete('pu');
    wanted.set('pf', file);
  }
  return Object.entries(profileNames).flatMap(([key, field]) => {
    const [source, redis] = [wanted.get(key), stored.get(key)];
    return source === redis ? [] : [{ field, redis, source }];
  });
}

const compareOrganizations: Comparer<'organizations'> = async (_, { settings }, records) =>
  records.map((record) => {
    const id = record.organizationId;
    return compareFields(
      organizationRecord(id, organizationSettings(record)),
      organizationRecord(id, settings),
    );
  });

const compareKeys: Comparer<'api-keys'> = async ({ store }, { id, base }, records) => {
  const found = await Promise.all(
    records.map(({ apiKeySha256 }) => store.hgetall(apiKeyKey(base, apiKeySha256))),
  );
  return records.map((record, position) =>
    compareFields(record, apiKeyRecord(id, record.apiKeySha256, found[position] ?? {})),
  );
};

const compareObjects: Comparer<'objects'> = async ({ store }, { base }, records) => {
  const urls = await store.hmget(objectsKey(base), ...records.map(encodeReference));
  return records.map(({ url }, position) => compareFields({ url }, { url: urls[position] ?? undefined }));
};

const compareDenylist: Comparer<'denylist'> = async ({ store }, organization, records) => {
  const forms = records.map(({ username }) => normalizedIn(organization, username));
  const found = await store.hmget(denylistKey(organization.base, organization.index), ...forms);
  return records.map(({ username }, position) => {
    const spelled = found[position] ?? undefined;
    return compareFields({ username }, { username: spelled === '' ? forms[position] : spelled });
  });
};

const comparers: { readonly [E in Entity]: Comparer<E> } = {
  organizations: compareOrganizations,
  'api-keys': compareKeys,
  objects: compareObjects,
  collections: async (_, __, records) => records.map(() => []),
  profiles: compareProfiles,
  denylist: compareDenylist,
};

function compareFields(wanted: object, stored: object): Difference[] {
  const fields = new Set([...Object.keys(wanted), ...Object.keys(stored)]);
  return [...fields].flatMap((field) => {
    const source = (wanted as Record<string, unknown>)[field];
    const redis = (stored as Record<string, unknown>)[field];
    return source === redis ? [] : [{ field, redis, source }];
  });
}
