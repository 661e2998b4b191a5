import { encodeReference, type ObjectReference } from '../../../domain/profile.ts';
import { getOrInsert } from '../../../lib/collections/get-or-insert.ts';
import { objectsKey, profileKey } from '../../../redis/keys.ts';
import { identityOf, namespaceOf } from '../../analysis/identity.ts';
import { createSeen, type Seen } from '../../analysis/seen.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { organizationSettings } from '../../records/stored.ts';
import { chunksOf, type Item, type Scope } from '../../sources/scope.ts';
import type { MigrationContext } from '../context.ts';
import { UsageError } from '../issues.ts';
import { withOrderedPool, type OrderedPool } from '../ordered-pool.ts';
import type { Organization } from '../organizations.ts';

/** A record of the source, as it is read. */
export interface ReadItem<E extends Entity = Entity> {
  /** Rows of the whole source before it. */
  seq: number;
  item: Item<E>;
  organization: Organization;
  /** Another record with its identity may have come before. */
  isRepeated: boolean;
}

export interface Reading {
  /** Rows, by entity. */
  read: Map<Entity, number>;
  /** Rows that are not records, by entity. */
  invalid: Map<Entity, number>;
  /** Every record's identity. */
  seen: Seen;
  /** The identities that occurred more than once. */
  repeated: Seen;
  /** The greatest updatedAt of a profile. */
  newest: number;
}

export interface ReadHandlers {
  /** What the progress shows before the entity's name. */
  phase: string;
  /** Called for the organization of every record, before the record is taken. */
  claim?: ((organization: Organization) => Promise<void> | undefined) | undefined;
  /** Gets every record, some at a time; several calls are in progress at once, except for repeated identities. */
  take: (entity: Entity, items: readonly ReadItem[]) => Promise<unknown>;
  /** Called for every row that is not a record. */
  onInvalid?: ((entity: Entity) => void) | undefined;
  /**
   * Called in order when records were accepted: rows of the whole source up to there, and the entity's share, 0 to 1.
   */
  onAccepted?: ((rows: number, entity: Entity, share: number) => void) | undefined;
}

/** How far ahead of now an updatedAt may be without a warning, in ms. */
const aheadAllowed = 24 * 60 * 60_000;

/**
 * Reads the source once, and hands every record to `take`. Reports rows that are not records, and references to what is
 * neither in the source nor in Redis. Ends early on `signal`. An organization asked for that neither knows is a
 * UsageError.
 */
export async function readSource(
  scope: Scope,
  context: MigrationContext,
  { phase, claim, take, onInvalid, onAccepted }: ReadHandlers,
): Promise<Reading> {
  const { issues, organizations, progress, signal } = context;
  const reading: Reading = {
    read: new Map(),
    invalid: new Map(),
    seen: createSeen(),
    repeated: createSeen(),
    newest: 0,
  };
  const latest = Date.now() + aheadAllowed;
  const reportUnknown = createOrganizationCheck(context);
  const checkReferences = createReferenceCheck(context, reading.seen);
  let before = 0;
  const readEntity = async (entity: Entity, pool: OrderedPool): Promise<void> => {
    let read = 0;
    let invalid = 0;
    let [lastId, place] = ['', ''];
    for await (const chunk of chunksOf(scope, entity)) {
      if (signal.aborted) break;
      progress.advance(`${phase} ${entity}`, chunk.read, chunk.progress);
      read += chunk.read;
      reading.read.set(entity, read);
      invalid += chunk.invalid.length;
      reading.invalid.set(entity, invalid);
      for (const { where, reason, ...names } of chunk.invalid) {
        onInvalid?.(entity);
        issues.add({ entity, reason: 'invalid', where, detail: reason, ...names });
      }
      const items: ReadItem[] = [];
      for (const item of chunk.items) {
        const { record } = item;
        const id = record.organizationId;
        if (entity === 'organizations') await organizations.plan(id, organizationSettings(record));
        const found = organizations.find(id);
        const organization = found instanceof Promise ? await found : found;
        const claiming = claim?.(organization);
        if (claiming !== undefined) await claiming;
        if (!organization.isKnown) reportUnknown(entity, item);
        warn(context, entity, item, latest);
        if (id !== lastId) place = namespaceOf(entity, id);
        lastId = id;
        const identity = identityOf(entity, record, organization);
        const isRepeated = reading.seen.add(place, identity);
        if (isRepeated) reading.repeated.add(place, identity);
        if (entity === 'profiles') {
          const { username, updatedAt = 0 } = record as RecordOf['profiles'];
          if (username !== undefined) organization.namesToCome += 1;
          reading.newest = Math.max(reading.newest, updatedAt);
        }
        items.push({ seq: before + item.seq, item, organization, isRepeated });
      }
      const checks = checkReferences(entity, items);
      if (checks !== undefined) await checks;
      const rows = before + read;
      const { progress: share } = chunk;
      if (items.some(({ isRepeated }) => isRepeated)) await pool.drain();
      await pool.add(take(entity, items), () => onAccepted?.(rows, entity, share));
      if (items.some(({ isRepeated }) => isRepeated)) await pool.drain();
    }
    reading.read.set(entity, read);
    before += read;
  };
  try {
    for (const entity of scope.entities) {
      await withOrderedPool(context.concurrency, async (pool) => await readEntity(entity, pool));
    }
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
  }
  if (!signal.aborted) await requireKnown(scope, context);
  return reading;
}

/** A misspelled organization must not look like an empty one without problems. */
async function requireKnown(
  { source, organizationId }: Scope,
  { organizations }: MigrationContext,
): Promise<void> {
  if (organizationId === undefined || organizations.all().some(({ id }) => id === organizationId)) return;
  if ((await organizations.find(organizationId)).exists) return;
  throw new UsageError(
    `neither ${source.name} nor Redis has an organization ${JSON.stringify(organizationId)}: correct --org; profile-bridge admin org list shows those in Redis`,
  );
}

function warn({ issues }: MigrationContext, entity: Entity, item: Item, latest: number): void {
  const { organizationId, userId, updatedAt = 0 } = item.record as Partial<RecordOf['profiles']>;
  if (item.warnings === undefined && updatedAt <= latest) return;
  const details = [...(item.warnings ?? [])];
  if (updatedAt > latest) {
    details.push(
      `updatedAt ${new Date(updatedAt).toISOString()} is more than a day ahead: until then no change in the source counts as newer`,
    );
  }
  for (const detail of details)
    issues.add({ entity, reason: 'unusual-value', where: item.where(), detail, organizationId, userId });
}

/** Reports each organization once that neither the source nor Redis describes. */
function createOrganizationCheck({ issues }: MigrationContext) {
  const reported = new Set<string>();
  return (entity: Entity, item: Item): void => {
    const { organizationId } = item.record;
    if (reported.has(organizationId)) return;
    reported.add(organizationId);
    const detail = `organization ${JSON.stringify(organizationId)} is described neither in the source nor in Redis: it gets the default settings`;
    issues.add({ entity, reason: 'unknown-organization', where: item.where(), detail, organizationId });
  };
}

/** References remembered, so that each is looked up once; beyond, one may be looked up and reported again. */
const remembered = 200_000;

interface Reference {
  exists: () => Promise<number>;
  report: () => void;
}

/** Reports objects and users that are referred to, and are neither in the source as far as it was read nor in Redis. */
function createReferenceCheck({ store, issues }: MigrationContext, seen: Seen) {
  /** Objects that were looked up, by organization and datasource. */
  const objects = new Map<Organization, Map<string, Set<string>>>();
  let count = 0;
  const wasLookedUp = (
    organization: Organization,
    { datasourceId, objectDefinitionId }: ObjectReference,
  ): boolean => {
    if (objects.get(organization)?.get(datasourceId)?.has(objectDefinitionId) === true) return true;
    if (count >= remembered) return false;
    count += 1;
    const own = getOrInsert(objects, organization, () => new Map<string, Set<string>>());
    getOrInsert(own, datasourceId, () => new Set<string>()).add(objectDefinitionId);
    return false;
  };

  const userOf = (entity: Entity, { item, organization }: ReadItem): Reference | undefined => {
    const { organizationId, userId } = item.record as RecordOf['collections'];
    if (userId === undefined || seen.has(namespaceOf('profiles', organizationId), userId)) return undefined;
    const detail = `user ${JSON.stringify(userId)} has no profile`;
    const issue = { entity, reason: 'unknown-user', detail, organizationId, userId } as const;
    return {
      exists: async () => await store.exists(profileKey(organization.base, userId)),
      report: () => issues.add({ ...issue, where: item.where() }),
    };
  };

  const objectOf = (
    { item, organization }: ReadItem,
    reference: ObjectReference | undefined,
    url: string | undefined,
  ): Reference | undefined => {
    const isResolved = url !== undefined || organization.settings.objectImageUrlTemplate !== undefined;
    if (reference === undefined || isResolved || wasLookedUp(organization, reference)) return undefined;
    const { organizationId, userId, username } = item.record as RecordOf['profiles'];
    const key = encodeReference(reference);
    if (seen.has(namespaceOf('objects', organizationId), key)) return undefined;
    const detail = `object ${JSON.stringify(reference.objectDefinitionId)} of datasource ${JSON.stringify(reference.datasourceId)} is not in the catalogue: references to it are kept without a URL`;
    const issue = { entity: 'profiles', reason: 'unresolved-reference', detail, organizationId } as const;
    return {
      exists: async () => await store.hexists(objectsKey(organization.base), key),
      report: () => issues.add({ ...issue, where: item.where(), userId, username }),
    };
  };

  const missingFor = (entity: Entity, items: readonly ReadItem[]): Reference[] => {
    const found: Reference[] = [];
    const add = (reference: Reference | undefined): void => {
      if (reference !== undefined) found.push(reference);
    };
    for (const item of items) {
      if (entity !== 'profiles') {
        add(userOf(entity, item));
        continue;
      }
      const { profilePictureObjectDefinitionId, profilePictureUrl, avatar } = item.item
        .record as RecordOf['profiles'];
      add(objectOf(item, profilePictureObjectDefinitionId, profilePictureUrl));
      add(objectOf(item, avatar, avatar?.url));
    }
    return found;
  };

  return (entity: Entity, items: readonly ReadItem[]): Promise<void> | undefined => {
    if (entity === 'organizations' || entity === 'objects' || entity === 'denylist') return undefined;
    const references = missingFor(entity, items);
    return references.length === 0 ? undefined : reportMissing(references);
  };
}

async function reportMissing(references: readonly Reference[]): Promise<void> {
  const found = await Promise.all(references.map(async ({ exists }) => await exists()));
  for (const [position, { report }] of references.entries()) if (found[position] !== 1) report();
}
