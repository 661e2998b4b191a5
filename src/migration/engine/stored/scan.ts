import {
  apiKeyKey,
  collectionKey,
  denylistKey,
  objectsKey,
  profileKey,
  settingsKey,
} from '../../../redis/keys.ts';
import { scanKeys, scanMembers, scanPairs } from '../../../redis/connection/scan.ts';
import { groupBy } from '../../../lib/collections/group-by.ts';
import { collectionIdentity, splitCollectionIdentity } from '../../analysis/identity.ts';
import { separator } from '../../../lib/bounded-memory/sorter.ts';
import type { Entity } from '../../records/records.ts';
import type { MigrationContext } from '../../context/context.ts';
import type { Issue } from '../../context/issues.ts';
import type { Organization } from '../../context/organizations.ts';

/** A record in Redis. */
export interface StoredRecord {
  entity: Entity;
  organization: Organization;
  /** As identityOf gives it. */
  key: string;
}

/** A record as a line, which sorts by entity, organization and key. */
export function lineOf({ entity, organization, key }: StoredRecord): string {
  // References hold the one control character that lines must not.
  return entity + separator + organization.id + separator + key.replaceAll('\n', '\u0002');
}

/** The part of a line that says the entity and the organization. */
export function groupOf(line: string): string {
  return line.slice(0, line.lastIndexOf(separator));
}

/** Records of one entity and organization. */
export type StoredGroup = Omit<StoredRecord, 'key'> & { keys: readonly string[] };

/** The records of lines of one group. */
export async function recordsOf(
  { organizations }: MigrationContext,
  lines: readonly [string, ...string[]],
): Promise<StoredGroup> {
  const [entity, id = ''] = lines[0].split(separator);
  const keys = lines.map((line) => line.slice(line.lastIndexOf(separator) + 1).replaceAll('\u0002', '\n'));
  return { entity: entity as Entity, organization: await organizations.find(id), keys };
}

/** What the keys that hold records begin with, after the organization's base. */
const kinds = {
  profiles: profileKey('', ''),
  'api-keys': apiKeyKey('', ''),
  collections: collectionKey('', ''),
};
const isKind = (entity: Entity): entity is keyof typeof kinds => entity in kinds;

/**
 * The records of these entities and organizations in one pass through Redis; one that is there all the time is given,
 * perhaps twice. `onOther` is called with the base of any other organization that the pass meets.
 */
export async function* scanRecords(
  context: MigrationContext,
  entities: readonly Entity[],
  among: readonly Organization[],
  onOther?: (base: string) => void,
): AsyncGenerator<StoredRecord> {
  const { store } = context;
  const wanted = entities.filter(isKind);
  if (wanted.length > 0) {
    for await (const { organization, suffixes } of scanOrganizations(context, among, onOther)) {
      context.signal.throwIfAborted();
      for (const suffix of suffixes) {
        const entity = wanted.find((each) => suffix.startsWith(kinds[each]));
        if (entity === undefined) continue;
        const key = suffix.slice(kinds[entity].length);
        if (entity !== 'collections') {
          yield { entity, organization, key };
          continue;
        }
        for await (const members of scanMembers(store, collectionKey(organization.base, key))) {
          for (const reference of members)
            yield { entity, organization, key: collectionIdentity(key, reference) };
        }
      }
    }
  }
  if (entities.includes('organizations'))
    for (const organization of among) yield { entity: 'organizations', organization, key: '' };
  for (const entity of ['objects', 'denylist'] as const) {
    if (!entities.includes(entity)) continue;
    for (const organization of among) {
      const { base, index } = organization;
      const key = entity === 'objects' ? objectsKey(base) : denylistKey(base, index);
      for await (const pairs of scanPairs(store, key)) {
        context.signal.throwIfAborted();
        for (const [field] of pairs) yield { entity, organization, key: field };
      }
    }
  }
}

/**
 * Keys of these organizations, some of one organization at a time; of each, what follows the organization's base.
 * `onOther` is called with the base of any other organization that exists, perhaps twice.
 */
export async function* scanOrganizations(
  { store, prefix }: Pick<MigrationContext, 'store' | 'prefix'>,
  among: readonly Organization[],
  onOther?: (base: string) => void,
): AsyncGenerator<{ organization: Organization; suffixes: string[] }> {
  if (among.length === 0) return;
  const bases = new Map(among.map((organization) => [organization.base, organization]));
  const [only] = among.length === 1 && onOther === undefined ? among : [];
  const start = only === undefined ? `${prefix}{` : only.base;
  for await (const keys of scanKeys(store, start)) {
    const groups = groupBy(keys, (key) => key.slice(0, key.indexOf('}:', prefix.length) + 2));
    for (const [base, own] of groups) {
      const organization = bases.get(base);
      if (organization === undefined) {
        if (own.includes(settingsKey(base))) onOther?.(base);
        continue;
      }
      yield { organization, suffixes: own.map((key) => key.slice(base.length)) };
    }
  }
}

/** What an issue says of a record in any case; it is at its Redis key, or that of the hash or set it is in. */
export function aboutStored({ entity, organization, key }: StoredRecord): Omit<Issue, 'reason' | 'detail'> {
  return {
    entity,
    where: places[entity](organization, key),
    organizationId: organization.id,
    userId: entity === 'profiles' ? key : undefined,
  };
}

const places: Readonly<Record<Entity, (organization: Organization, key: string) => string>> = {
  organizations: ({ base }) => settingsKey(base),
  'api-keys': ({ base }, key) => apiKeyKey(base, key),
  objects: ({ base }, key) => `${objectsKey(base)} ${JSON.stringify(key)}`,
  collections: ({ base }, key) => {
    const [user, reference] = splitCollectionIdentity(key);
    return `${collectionKey(base, user)} ${JSON.stringify(reference)}`;
  },
  profiles: ({ base }, key) => profileKey(base, key),
  denylist: ({ base, index }, key) => `${denylistKey(base, index)} ${JSON.stringify(key)}`,
};
