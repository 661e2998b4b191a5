import type { Chunk, Item } from '../sources/chunks.ts';
import type { MigrationContext } from '../engine/context.ts';
import { createCrosscheck, type Crosscheck, type Side } from './crosscheck.ts';
import type { Decisions } from './decisions.ts';
import type { Workspace } from './workspace.ts';
import { fingerprint } from './fingerprint.ts';
import { visitFacts, type Checks, type Visit } from './facts.ts';
import { UsageError, type Issues } from '../engine/issues.ts';
import { judge } from './judge.ts';
import type { Entity, RecordOf } from '../records/records.ts';
import { createReferences } from './references.ts';
import { chunksOf, type Scope } from '../sources/scope.ts';
import { organizationSettings } from '../records/stored.ts';

export interface Survey {
  /** Rows read, by entity. */
  readonly read: ReadonlyMap<Entity, number>;
  /** What becomes of records that are not simply brought in. */
  readonly decisions: Readonly<Record<Entity, Decisions>>;
  /** The greatest updatedAt of a profile. */
  readonly newest: number;
}

/**
 * Reads the source once, and those of its entities where something was found once more: which rows are no records,
 * which records stand for the same thing, which users want the same name, what is referred to without being there.
 * Writes nothing. An organization asked for that neither the source nor Redis knows is a UsageError. Memory stays flat: what a judgement needs to remember of every record is a number on disk.
 */
export async function surveySource(
  scope: Scope,
  context: MigrationContext,
  onChunk?: (entity: Entity, chunk: Chunk) => void,
): Promise<Survey> {
  const { workspace, organizations, issues, signal } = context;
  const checks = createChecks(scope, workspace);
  const references = createReferences(workspace);
  const read = new Map<Entity, number>();
  const strangers = new Set<string>();
  let newest = 0;
  let organizationId = '';
  const note: Visit = (key, check, side, other, otherSide) => {
    const own = fingerprint(organizationId, key);
    check.note(side, own);
    if (other !== undefined && otherSide !== undefined) other.note(otherSide, own);
  };

  for (const entity of scope.entities) {
    for await (const chunk of chunksOf(scope, entity)) {
      signal.throwIfAborted();
      onChunk?.(entity, chunk);
      context.progress.advance(`reading ${entity}`, chunk.read, chunk.progress);
      read.set(entity, (read.get(entity) ?? 0) + chunk.read);
      for (const { where, reason, ...names } of chunk.invalid)
        issues.add({ entity, reason: 'invalid', where, detail: reason, ...names });
      for (const item of chunk.items) {
        const id = item.record.organizationId;
        if (entity === 'organizations') {
          await organizations.plan(id, organizationSettings(item.record));
        }
        const found = organizations.find(id);
        const organization = found instanceof Promise ? await found : found;
        if (!organization.isKnown && !strangers.has(id)) {
          strangers.add(id);
          const detail = `organization ${JSON.stringify(id)} is described neither here nor in Redis: it gets the default settings`;
          issues.add({
            entity,
            reason: 'unknown-organization',
            where: item.where(),
            detail,
            organizationId: id,
          });
        }
        if (item.warnings !== undefined) warn(issues, entity, item);
        organizationId = id;
        if (entity === 'objects') await references.addObject(item as Item<'objects'>);
        const referring =
          entity === 'profiles' ? references.addProfile(item as Item<'profiles'>, organization) : undefined;
        if (referring !== undefined) await referring;
        visitFacts(checks, entity, item.record, organization, note);
        if (entity === 'profiles') {
          const { username, updatedAt = 0 } = item.record as RecordOf['profiles'];
          if (username !== undefined) organization.namesToCome += 1;
          newest = Math.max(newest, updatedAt);
        }
      }
    }
  }

  await requireKnown(scope, context);
  const concerned = allChecks(checks).filter((check) => check.settle());
  if (concerned.length > 0) await collect(scope, context, checks, concerned);
  const decisions = await judge(scope, context, checks, references);
  return { read, decisions, newest };
}

/** A misspelt organization must not look like an empty one, which all is well with. */
async function requireKnown(
  { source, organizationId }: Scope,
  { organizations }: MigrationContext,
): Promise<void> {
  if (organizationId === undefined || organizations.all().some(({ id }) => id === organizationId)) return;
  if ((await organizations.find(organizationId)).exists) return;
  throw new UsageError(
    `neither ${source.name} nor Redis knows an organization ${JSON.stringify(organizationId)}: correct --org; profile-bridge admin org list tells those in Redis`,
  );
}

function warn(issues: Issues, entity: Entity, item: Item): void {
  for (const detail of item.warnings ?? []) {
    const { organizationId } = item.record;
    issues.add({ entity, reason: 'unusual-value', where: item.where(), detail, organizationId });
  }
}

function createChecks({ entities }: Scope, workspace: Workspace): Checks {
  const repeated = (): Crosscheck => createCrosscheck(workspace, 'repeated');
  const reads = (...some: Entity[]): boolean => some.some((entity) => entities.includes(entity));
  return {
    identity: {
      organizations: repeated(),
      'api-keys': repeated(),
      objects: repeated(),
      collections: repeated(),
      profiles: repeated(),
      denylist: repeated(),
    },
    names: repeated(),
    denied: createCrosscheck(workspace, 'shared', () => reads('denylist') && reads('profiles')),
    users: createCrosscheck(workspace, 'missing', () => reads('api-keys', 'collections')),
  };
}

function allChecks({ identity, names, denied, users }: Checks): Crosscheck[] {
  return [...Object.values(identity), names, denied, users];
}

/** Reads again what the first reading has found to look at closely. */
async function collect(
  scope: Scope,
  { organizations, progress, signal }: MigrationContext,
  checks: Checks,
  concerned: readonly Crosscheck[],
): Promise<void> {
  const isConcerned = new Set(concerned);
  for (const entity of scope.entities) {
    for await (const chunk of chunksOf(scope, entity)) {
      signal.throwIfAborted();
      progress.advance(`comparing ${entity}`, chunk.read, chunk.progress);
      for (const item of chunk.items) {
        const id = item.record.organizationId;
        const organization = await organizations.find(id);
        // The same key may concern several checks.
        const facts: [Crosscheck, Side, string][] = [];
        visitFacts(checks, entity, item.record, organization, (key, check, side, other, otherSide) => {
          const own = fingerprint(id, key);
          if (isConcerned.has(check) && check.concerns(own)) facts.push([check, side, key]);
          if (other === undefined || otherSide === undefined) return;
          if (isConcerned.has(other) && other.concerns(own)) facts.push([other, otherSide, key]);
        });
        if (facts.length === 0) continue;
        const { userId, username, updatedAt } = item.record as Partial<RecordOf['profiles']>;
        const collected = { entity, where: item.where(), userId, username, updatedAt };
        for (const [check, side, key] of facts) await check.collect(side, id, key, item.seq, collected);
      }
    }
  }
}
