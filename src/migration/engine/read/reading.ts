import { encodeReference, canFillTemplate, type ObjectReference } from '../../../domain/profile.ts';
import { objectsKey, profileKey } from '../../../redis/keys.ts';
import { identityOf, namespaceOf } from '../../analysis/identity.ts';
import { createSeen, type Seen } from '../../../lib/bounded-memory/seen.ts';
import type { Entity, RecordOf } from '../../records/records.ts';
import { organizationSettings } from '../../records/stored.ts';
import type { Scope } from '../../sources/scope.ts';
import type { Batch } from '../../sources/source.ts';
import type { MigrationContext } from '../../context/context.ts';
import { UsageError } from '../../errors.ts';
import { subjectOf, type Reason } from '../../context/issues.ts';
import { withOrderedPool, type OrderedPool } from '../../../lib/collections/ordered-pool.ts';
import type { Organization } from '../../context/organizations.ts';

/** A record of the source, as it is read. */
export interface Item<E extends Entity = Entity> {
  /** Rows of the whole source before it, readable or not. */
  readonly seq: number;
  readonly record: RecordOf[E];
  readonly organization: Organization;
  /** Another record with its identity may have come before. */
  readonly isRepeated: boolean;
  readonly batch: Batch;
  /** Rows of the batch before it. */
  readonly index: number;
}

/** For people: a record's place in the source, which no other record of the entity has. */
export function placeOf({ batch, index }: Item): string {
  return batch.placeOf(index);
}

export type Reading = Awaited<ReturnType<typeof readSource>>;

export interface ReadHandlers {
  /** What the progress shows before the entity's name. */
  phase: string;
  /** Called for the organization of every record, before the record is taken. */
  onOrganization?: ((organization: Organization) => Promise<void> | undefined) | undefined;
  /** Gets every record, some at a time; several calls are in progress at once, except for repeated identities. */
  take: (entity: Entity, items: readonly Item[]) => Promise<unknown>;
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
  { phase, onOrganization, take, onAccepted }: ReadHandlers,
) {
  const { issues, organizations, progress, signal } = context;
  const reading = {
    /** Rows, by entity. */
    read: new Map<Entity, number>(),
    /** Every record's identity. */
    seen: createSeen(scope.seed),
    /** The identities that occurred more than once. */
    repeated: createSeen(),
    /** The greatest updatedAt of a profile. */
    newest: 0,
  };
  const latest = Date.now() + aheadAllowed;
  const checkReferences = createReferenceCheck(context, reading.seen);
  let before = 0;

  /** The records of a batch; rows that are none are reported. */
  const itemsOf = async (entity: Entity, batch: Batch): Promise<Item[]> => {
    const items: Item[] = [];
    let organization: Organization | undefined;
    let namespace = '';
    for (const [index, row] of batch.rows.entries()) {
      if (!row.ok) {
        reportInvalid(context, entity, batch, index, row);
        continue;
      }
      const { record, warnings } = row;
      const id = record.organizationId;
      if (entity === 'organizations') await organizations.plan(id, organizationSettings(record));
      if (organization?.id !== id) {
        // Nearly always known: not to wait saves a turn for each row.
        const found = organizations.find(id);
        organization = found instanceof Promise ? await found : found;
        namespace = namespaceOf(entity, id);
      }
      const waiting = onOrganization?.(organization);
      if (waiting !== undefined) await waiting;
      const identity = identityOf(entity, record, organization);
      const isRepeated = reading.seen.add(namespace, identity);
      if (isRepeated) reading.repeated.add(namespace, identity);
      const item: Item = { seq: before + index, record, organization, isRepeated, batch, index };
      if (!organization.isKnown) reportUnknown(context, entity, item);
      warn(context, entity, item, warnings, latest);
      if (entity === 'profiles') {
        const { username, updatedAt = 0 } = record as RecordOf['profiles'];
        if (username !== undefined) organization.namesToCome += 1;
        reading.newest = Math.max(reading.newest, updatedAt);
      }
      items.push(item);
    }
    return items;
  };

  const readEntity = async (entity: Entity, pool: OrderedPool): Promise<void> => {
    reading.read.set(entity, 0);
    let hasRepeats = false;
    const options = { ...scope, signal, mayRepeat: () => hasRepeats };
    for await (const batch of scope.source.read(entity, options)) {
      if (signal.aborted) break;
      progress.advance(`${phase} ${entity}`, batch.rows.length, batch.progress);
      for (const detail of batch.warnings ?? [])
        issues.add({ entity, reason: 'unusual-value', where: entity, detail });
      const items = await itemsOf(entity, batch);
      before += batch.rows.length;
      reading.read.set(entity, (reading.read.get(entity) ?? 0) + batch.rows.length);
      await checkReferences(entity, items);

      const rows = before;
      const { progress: share } = batch;
      const hasRepeated = items.some(({ isRepeated }) => isRepeated);
      hasRepeats ||= hasRepeated;
      if (hasRepeated) await pool.drain();
      // What waits for acceptance must not keep the records alive: collecting garbage that old costs more than the rest.
      await pool.add(take(entity, items), () => onAccepted?.(rows, entity, share));
      if (hasRepeated) await pool.drain();
    }
  };
  try {
    for (const entity of scope.entities) {
      await withOrderedPool(scope.concurrency, async (pool) => await readEntity(entity, pool));
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

function reportInvalid(
  { issues, tallies }: MigrationContext,
  entity: Entity,
  batch: Batch,
  index: number,
  { reason, organizationId, userId, username }: Extract<Batch['rows'][number], { ok: false }>,
): void {
  tallies.add(entity, undefined, 'invalid');
  const where = batch.placeOf(index);
  issues.add({ entity, reason: 'invalid', where, detail: reason, organizationId, userId, username });
}

function warn(
  { issues }: MigrationContext,
  entity: Entity,
  item: Item,
  warnings: readonly string[] | undefined,
  latest: number,
): void {
  const { organizationId, userId, updatedAt = 0 } = item.record as Partial<RecordOf['profiles']>;
  if (warnings === undefined && updatedAt <= latest) return;
  const details = [...(warnings ?? [])];
  if (updatedAt > latest) {
    details.push(
      `updatedAt ${new Date(updatedAt).toISOString()} is more than a day ahead: until then no change in the source counts as newer`,
    );
  }
  for (const detail of details)
    issues.add({ entity, reason: 'unusual-value', where: placeOf(item), detail, organizationId, userId });
}

/** Reports an organization, once, that neither the source nor Redis describes. */
function reportUnknown({ issues }: MigrationContext, entity: Entity, item: Item): void {
  const { id } = item.organization;
  item.organization.isKnown = true;
  const detail = `organization ${JSON.stringify(id)} is described neither in the source nor in Redis: it gets the default settings`;
  issues.add({ entity, reason: 'unknown-organization', where: placeOf(item), detail, organizationId: id });
}

/** Reports objects and users that are referred to, and are neither in the source as far as it was read nor in Redis. */
function createReferenceCheck({ store, issues }: MigrationContext, seen: Seen) {
  /** Objects that were looked up. A filter: it may take another one for such an object. */
  const lookedUp = createSeen();
  return (entity: Entity, items: readonly Item[]): Promise<unknown> | undefined => {
    const checks: Promise<void>[] = [];
    const reportUnless = async (
      exists: Promise<number>,
      item: Item,
      reason: Reason,
      detail: string,
    ): Promise<void> => {
      if ((await exists) === 0)
        issues.add({ entity, reason, where: placeOf(item), detail, ...subjectOf(item.record) });
    };
    const checkUser = (item: Item): void => {
      const { organizationId, userId } = item.record as RecordOf['collections'];
      if (userId === undefined || seen.has(namespaceOf('profiles', organizationId), userId)) return;
      const exists = store.exists(profileKey(item.organization.base, userId));
      const detail = `user ${JSON.stringify(userId)} has no profile`;
      checks.push(reportUnless(exists, item, 'unknown-user', detail));
    };
    const checkObject = (item: Item, reference?: ObjectReference, url?: string): void => {
      const { id, base, settings } = item.organization;
      if (reference === undefined || url !== undefined) return;
      if (settings.objectImageUrlTemplate !== undefined && canFillTemplate(reference)) return;
      const namespace = namespaceOf('objects', id);
      const key = encodeReference(reference);
      if (seen.has(namespace, key) || lookedUp.add(namespace, key)) return;
      const exists = store.hexists(objectsKey(base), key);
      const detail = `object ${JSON.stringify(reference.objectDefinitionId)} of datasource ${JSON.stringify(reference.datasourceId)} is not in the catalogue: references to it are kept without a URL`;
      checks.push(reportUnless(exists, item, 'unresolved-reference', detail));
    };
    for (const item of items) {
      if (entity === 'api-keys' || entity === 'collections') checkUser(item);
      if (entity !== 'profiles') continue;
      const { profilePictureObjectDefinitionId, profilePictureUrl, avatar } = (item as Item<'profiles'>)
        .record;
      checkObject(item, profilePictureObjectDefinitionId, profilePictureUrl);
      checkObject(item, avatar, avatar?.url);
    }
    return checks.length === 0 ? undefined : Promise.all(checks);
  };
}
