import { encodeReference } from '../../domain/objects.ts';
import type { OrganizationSettings } from '../../domain/settings.ts';
import { apiKeyKey, collectionKey, denylistKey, objectsKey } from '../../redis/keys.ts';
import type { Item } from '../sources/chunks.ts';
import type { MigrationContext } from './context.ts';
import { isWrittenHere } from './extras.ts';
import { identityOf } from '../analysis/facts.ts';
import { groupBy } from '../../lib/group-by.ts';
import { normalizedIn, type Organization } from './organizations.ts';
import type { Entity, RecordOf } from '../records/records.ts';
import { apiKeyRecord, organizationRecord, organizationSettings, profileFields } from '../records/stored.ts';

/** What Redis has of a record. */
export type Comparison =
  | { kind: 'equal' }
  | { kind: 'missing' }
  | { kind: 'different'; detail: string }
  /** The profile is right, but its username leads to nobody, or to somebody else. */
  | { kind: 'index'; detail: string }
  /** Changed through the bridge or by its operator since, or newer here. */
  | { kind: 'changed-here'; detail: string }
  /** Another user has the username. */
  | { kind: 'taken'; detail: string };

const equal: Comparison = { kind: 'equal' };

/** Compares records with what Redis has of them, field by field; the answers are in the records' order. */
export async function compare<E extends Entity>(
  context: MigrationContext,
  entity: E,
  items: readonly Item<E>[],
): Promise<Map<Item<E>, Comparison>> {
  const all = new Map<Item<E>, Comparison>();
  for (const [id, own] of groupBy(items, ({ record }) => record.organizationId)) {
    const organization = await context.organizations.find(id);
    const records = own.map(({ record }) => record);
    const found = await (comparers[entity] as Comparer<E>)(context, organization, records);
    for (const [position, item] of own.entries()) {
      const record = records[position];
      let comparison = found[position] ?? equal;
      if (comparison.kind !== 'equal' && entity !== 'profiles' && record !== undefined) {
        const place = { entity, organization, key: identityOf(entity, record, organization) };
        if (await isWrittenHere(context, place))
          comparison = { kind: 'changed-here', detail: 'was changed here' };
      }
      all.set(item, comparison);
    }
  }
  return all;
}

type Comparer<E extends Entity> = (
  context: MigrationContext,
  organization: Organization,
  records: readonly RecordOf[E][],
) => Promise<Comparison[]>;

const compareProfiles: Comparer<'profiles'> = async ({ store, mediaUrl }, organization, records) => {
  const forms = records.map(({ username }) =>
    username === undefined ? '' : normalizedIn(organization, username),
  );
  const rows = records.map(({ userId }, position) => [userId, forms[position]]);
  const found = await store.migrateRead(organization.base, organization.index, JSON.stringify(rows));
  return records.map((record, position) => {
    const [flat = [], holder = null] = found[position] ?? [];
    const isTaken = holder !== null && holder !== record.userId;
    const taken: Comparison = {
      kind: 'taken',
      detail: `username ${JSON.stringify(record.username)} is that of user ${JSON.stringify(holder)}`,
    };
    if (flat.length === 0) return isTaken ? taken : { kind: 'missing' };
    const wanted = pairs(profileFields(record, mediaUrl));
    const stored = pairs(flat);
    const differences = profileDifferences(wanted, stored);
    if (differences.length > 0) {
      const detail = differences.join('; ');
      if (stored.has('b'))
        return { kind: 'changed-here', detail: `was changed through the bridge: ${detail}` };
      if (Number(stored.get('t') ?? '') > (record.updatedAt ?? -1) && stored.get('t') !== '') {
        return { kind: 'changed-here', detail: `is newer in Redis: ${detail}` };
      }
      return isTaken ? taken : { kind: 'different', detail };
    }
    if (forms[position] !== '' && holder !== record.userId) {
      const leads = holder === null ? 'nobody' : `user ${JSON.stringify(holder)}`;
      const detail = `the name index leads from ${JSON.stringify(record.username)} to ${leads}, not to user ${JSON.stringify(record.userId)}`;
      return { kind: 'index', detail };
    }
    return equal;
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

function profileDifferences(wanted: Map<string, string>, stored: Map<string, string>): string[] {
  const copiedFrom = stored.get('po');
  const file = stored.get('pf');
  // A picture that was copied here is the source's.
  if (file !== undefined && copiedFrom !== undefined && wanted.get('pu') === copiedFrom) {
    wanted.delete('pu');
    wanted.set('pf', file);
  }
  const differences: string[] = [];
  for (const [field, name] of Object.entries(profileNames)) {
    const one = wanted.get(field);
    const other = stored.get(field);
    if (one !== other) differences.push(`${name} is ${shown(other)}, should be ${shown(one)}`);
  }
  return differences;
}

const compareOrganizations: Comparer<'organizations'> = async (_, organization, records) =>
  records.map((record) => {
    if (!organization.exists) return { kind: 'missing' };
    const wanted = organizationSettings(record);
    return difference(
      described(record.organizationId, wanted),
      described(record.organizationId, organization.settings),
    );
  });

function described(id: string, settings: OrganizationSettings): object {
  return organizationRecord(id, settings);
}

const compareKeys: Comparer<'api-keys'> = async ({ store }, { id, base }, records) => {
  const found = await Promise.all(
    records.map(({ apiKeySha256 }) => store.hgetall(apiKeyKey(base, apiKeySha256))),
  );
  return records.map((record, position): Comparison => {
    const stored = found[position] ?? {};
    if (stored['i'] === undefined) return { kind: 'missing' };
    return difference(record, apiKeyRecord(id, record.apiKeySha256, stored));
  });
};

const compareObjects: Comparer<'objects'> = async ({ store }, { base }, records) => {
  const urls = await store.hmget(objectsKey(base), ...records.map(encodeReference));
  return records.map(({ url }, position): Comparison => {
    const stored = urls[position] ?? null;
    return stored === null ? { kind: 'missing' } : difference({ url }, { url: stored });
  });
};

const compareCollections: Comparer<'collections'> = async ({ store }, { base }, records) => {
  const found = await Promise.all(
    records.map((record) => store.sismember(collectionKey(base, record.userId), encodeReference(record))),
  );
  return found.map((isThere): Comparison => (isThere === 1 ? equal : { kind: 'missing' }));
};

const compareDenylist: Comparer<'denylist'> = async ({ store }, organization, records) => {
  const forms = records.map(({ username }) => normalizedIn(organization, username));
  const found = await store.hmget(denylistKey(organization.base, organization.index), ...forms);
  return records.map(({ username }, position): Comparison => {
    const spelled = found[position] ?? null;
    if (spelled === null) return { kind: 'missing' };
    return difference({ username }, { username: spelled === '' ? forms[position] : spelled });
  });
};

const comparers: { readonly [E in Entity]: Comparer<E> } = {
  organizations: compareOrganizations,
  'api-keys': compareKeys,
  objects: compareObjects,
  collections: compareCollections,
  profiles: compareProfiles,
  denylist: compareDenylist,
};

function difference(wanted: object, stored: object): Comparison {
  const names = new Set([...Object.keys(wanted), ...Object.keys(stored)]);
  const differences: string[] = [];
  for (const name of names) {
    const one = (wanted as Record<string, unknown>)[name];
    const other = (stored as Record<string, unknown>)[name];
    if (one !== other) differences.push(`${name} is ${shown(other)}, should be ${shown(one)}`);
  }
  return differences.length === 0 ? equal : { kind: 'different', detail: differences.join('; ') };
}

function shown(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}

function pairs(flat: readonly string[]): Map<string, string> {
  const map = new Map<string, string>();
  for (let at = 0; at + 1 < flat.length; at += 2) map.set(flat[at] ?? '', flat[at + 1] ?? '');
  return map;
}
