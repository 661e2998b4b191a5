import { collectionKey, denylistKey, objectsKey, organizationBase } from '../../../redis/keys.ts';
import { scanKeys, scanMembers, scanPairs } from '../../../redis/connection/scan.ts';
import type { Entity } from '../../records/records.ts';
import type { MigrationContext } from '../context.ts';
import type { Organization } from '../organizations.ts';

type ScanContext = Pick<MigrationContext, 'store' | 'prefix' | 'signal'>;

/** A record in Redis. */
export interface StoredRecord {
  entity: Entity;
  organization: Organization;
  /** As identityOf gives it. */
  key: string;
}

/** What a key of an organization holds, by what follows the organization's base. */
const kinds = { profiles: 'p:', 'api-keys': 'key:', collections: 'c:', organizations: 'settings' } as const;
const isKind = (entity: Entity): entity is keyof typeof kinds => entity in kinds;

/**
 * The records of these entities and organizations in one pass through Redis; one that is there all the time is given,
 * perhaps twice. `onOtherKey` gets the other keys of these organizations.
 */
export async function* scanRecords(
  context: ScanContext,
  entities: readonly Entity[],
  among: ReadonlyMap<string, Organization>,
  onOtherKey?: (organization: Organization, rest: string) => Promise<void> | undefined,
): AsyncGenerator<StoredRecord> {
  const { store } = context;
  const wanted = entities.filter(isKind);
  if (wanted.length > 0 || onOtherKey !== undefined) {
    const [only] = wanted.length === 1 && onOtherKey === undefined ? wanted : [];
    for await (const { organization, rest } of scanOrganizations(context, among, only && kinds[only])) {
      const entity = wanted.find((each) => rest.startsWith(kinds[each]));
      if (entity === undefined) {
        const handled = onOtherKey?.(organization, rest);
        if (handled !== undefined) await handled;
        continue;
      }
      const key = rest.slice(kinds[entity].length);
      if (entity !== 'collections') {
        yield { entity, organization, key };
        continue;
      }
      for await (const members of scanMembers(store, collectionKey(organization.base, key))) {
        for (const reference of members) yield { entity, organization, key: `${key}\u0003${reference}` };
      }
    }
  }
  for (const entity of ['objects', 'denylist'] as const) {
    if (!entities.includes(entity)) continue;
    for (const organization of among.values()) {
      const { base, index } = organization;
      const key = entity === 'objects' ? objectsKey(base) : denylistKey(base, index);
      for await (const pairs of scanPairs(store, key)) {
        context.signal.throwIfAborted();
        for (const [field] of pairs) yield { entity, organization, key: field };
      }
    }
  }
}

/** Keys of these organizations, each with what follows the organization's base. */
async function* scanOrganizations(
  { store, prefix, signal }: ScanContext,
  among: ReadonlyMap<string, Organization>,
  kind = '',
): AsyncGenerator<{ organization: Organization; rest: string }> {
  const bases = new Map<string, Organization>();
  for (const organization of among.values()) bases.set(organization.base, organization);
  const [only] = among.size === 1 ? [...among.keys()] : [];
  const start = only === undefined ? `${prefix}{` : organizationBase(prefix, only) + kind;
  for await (const keys of scanKeys(store, start)) {
    signal.throwIfAborted();
    for (const key of keys) {
      const end = key.indexOf('}:', prefix.length) + 2;
      const organization = end === 1 ? undefined : bases.get(key.slice(0, end));
      if (organization !== undefined && key.startsWith(kind, end))
        yield { organization, rest: key.slice(end) };
    }
  }
}
