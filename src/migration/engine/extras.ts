import { collectionKey, denylistKey, objectsKey, organizationBase, profileKey } from '../../redis/keys.ts';
import { scanKeys, scanMembers, scanPairs } from '../../redis/scan.ts';
import type { MigrationContext } from './context.ts';
import { createCrosscheck, type Crosscheck } from '../analysis/crosscheck.ts';
import { fingerprint } from '../analysis/fingerprint.ts';
import { identityOf } from '../analysis/facts.ts';
import type { Organization } from './organizations.ts';
import type { Entity } from '../records/records.ts';
import { chunksOf, type Scope } from '../sources/scope.ts';

/** A record that Redis has and the source has not. */
export interface Extra {
  entity: Entity;
  organization: Organization;
  /** As identityOf gives it. */
  key: string;
}

/** A stored record's place. */
interface Stored {
  organization: Organization;
  key: string;
}

/** What a search for extras has looked at. */
export interface Searched {
  /** Records of Redis, by entity. */
  stored: Map<Entity, number>;
  /** Rows of the source that are no records, by entity; complete for an entity before its first extra is given. */
  unreadable: Map<Entity, number>;
}

/** A search that has not looked at anything yet. */
export function emptySearch(): Searched {
  return { stored: new Map(), unreadable: new Map() };
}

/**
 * Finds what Redis has of these organizations and the source has not. Reads both once, and once more if there is
 * anything to find; what is both added and removed meanwhile may be missed.
 */
export async function* findExtras(
  scope: Scope,
  context: MigrationContext,
  among: ReadonlyMap<string, Organization>,
  searched: Searched,
): AsyncGenerator<Extra> {
  for (const entity of scope.entities) {
    if (entity === 'organizations') continue;
    const check = createCrosscheck(context.workspace, 'missing');
    const onUnreadable = (rows: number): void => {
      searched.unreadable.set(entity, (searched.unreadable.get(entity) ?? 0) + rows);
    };
    for await (const { organization, key } of keysInSource(scope, context, entity, onUnreadable)) {
      check.note('a', fingerprint(organization.id, key));
    }
    let count = 0;
    for await (const { organization, key } of keysInRedis(context, entity, among)) {
      check.note('b', fingerprint(organization.id, key));
      count += 1;
    }
    searched.stored.set(entity, count);
    if (!check.settle()) continue;
    await collect(check, 'a', keysInSource(scope, context, entity));
    await collect(check, 'b', keysInRedis(context, entity, among));
    for await (const { organizationId, key, isFirst } of check.found()) {
      const organization = await context.organizations.find(organizationId);
      if (isFirst) yield { entity, organization, key };
    }
  }
}

async function collect(check: Crosscheck, side: 'a' | 'b', keys: AsyncIterable<Stored>): Promise<void> {
  for await (const { organization, key } of keys) {
    if (check.concerns(fingerprint(organization.id, key)))
      await check.collect(side, organization.id, key, 0, 0);
  }
}

async function* keysInSource(
  scope: Scope,
  context: MigrationContext,
  entity: Entity,
  onUnreadable?: (rows: number) => void,
): AsyncGenerator<Stored> {
  for await (const chunk of chunksOf(scope, entity)) {
    context.signal.throwIfAborted();
    if (chunk.invalid.length > 0) onUnreadable?.(chunk.invalid.length);
    context.progress.advance(`reading ${entity} for extras`, chunk.read, chunk.progress);
    for (const { record } of chunk.items) {
      const organization = await context.organizations.find(record.organizationId);
      yield { organization, key: identityOf(entity, record, organization) };
    }
  }
}

/** Keys of an entity's records in Redis; one that is there all the time is given, perhaps twice. */
export async function* keysInRedis(
  context: Pick<MigrationContext, 'store' | 'prefix' | 'signal'>,
  entity: Entity,
  among: ReadonlyMap<string, Organization>,
): AsyncGenerator<Stored> {
  const { store } = context;
  if (entity === 'objects' || entity === 'denylist') {
    for (const organization of among.values()) {
      const { base, index } = organization;
      const key = entity === 'objects' ? objectsKey(base) : denylistKey(base, index);
      for await (const pairs of scanPairs(store, key)) {
        context.signal.throwIfAborted();
        for (const [field] of pairs) yield { organization, key: field };
      }
    }
    return;
  }
  const kinds = { profiles: 'p:', 'api-keys': 'key:', collections: 'c:', organizations: 'settings' };
  for await (const { organization, rest } of storedKeys(context, among, kinds[entity])) {
    if (entity !== 'collections') {
      yield { organization, key: rest };
      continue;
    }
    for await (const members of scanMembers(store, collectionKey(organization.base, rest))) {
      for (const reference of members) yield { organization, key: `${rest}\u0003${reference}` };
    }
  }
}

/** Keys of these organizations that go on like this after their base, in one pass through Redis. */
export async function* storedKeys(
  { store, prefix, signal }: Pick<MigrationContext, 'store' | 'prefix' | 'signal'>,
  among: ReadonlyMap<string, Organization>,
  kind: string,
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
      if (organization !== undefined && key.startsWith(kind, end)) {
        yield { organization, rest: key.slice(end + kind.length) };
      }
    }
  }
}

/** The Redis key of an extra, or of the hash or set it stands in, for people. */
export function placeOf({ entity, organization, key }: Extra): string {
  const { base, index } = organization;
  switch (entity) {
    case 'profiles':
      return profileKey(base, key);
    case 'api-keys':
      return `${base}key:${key}`;
    case 'objects':
      return `${objectsKey(base)} ${JSON.stringify(key)}`;
    case 'denylist':
      return `${denylistKey(base, index)} ${JSON.stringify(key)}`;
    case 'collections': {
      const [user = '', reference = ''] = key.split('\u0003');
      return `${collectionKey(base, user)} ${JSON.stringify(reference)}`;
    }
    case 'organizations':
      return `${base}settings`;
    default:
      throw new TypeError(`no entity: ${String(entity satisfies never)}`);
  }
}

/** Whether the record was written here, through the bridge or by its operator, rather than brought in. */
export async function isWrittenHere(
  { store }: Pick<MigrationContext, 'store'>,
  { entity, organization: { base }, key }: Extra,
): Promise<boolean> {
  const marked = async (mark: string): Promise<boolean> =>
    (await store.sismember(`${base}local-writes`, mark)) === 1;
  switch (entity) {
    case 'profiles':
      return (await store.hget(profileKey(base, key), 'b')) !== null;
    case 'api-keys': {
      const [made, revoked] = await store.hmget(`${base}key:${key}`, 'b', 'x');
      return made !== null || revoked !== null;
    }
    case 'objects':
      return await marked(`o\n${key}`);
    case 'collections':
      return await marked(`c\n${key.replace('\u0003', '\n')}`);
    case 'denylist':
      return (await marked('d\n')) || (await marked(`d\n${key}`));
    case 'organizations':
      return (await store.hget(`${base}settings`, 'b')) !== null;
    default:
      throw new TypeError(`no entity: ${String(entity satisfies never)}`);
  }
}
