import type { Chunk, Item } from './chunks.ts';
import { readChunks } from './chunks.ts';
import type { MigrationContext } from './context.ts';
import { createCrosscheck, type Crosscheck } from './crosscheck.ts';
import { createDecisions, type Decisions } from './decisions.ts';
import type { Workspace } from './disk/workspace.ts';
import { factsOf, type Checks } from './facts.ts';
import type { Issues } from './issues.ts';
import { judge } from './judge.ts';
import type { Entity, RecordOf } from './records.ts';
import type { Source } from './sources/source.ts';
import { organizationSettings } from './stored.ts';

/** What to do with a record that has a problem. */
export type OnConflict = 'abort' | 'skip' | 'drop-username';

/** A look at the source: what is read, and how. */
export interface Scope {
  readonly source: Source;
  /** In the order they are brought in. */
  readonly entities: readonly Entity[];
  readonly organizationId?: string | undefined;
  readonly size?: number | undefined;
  /** Profiles that surely have not changed since then may be left out (epoch ms). */
  readonly since?: number | undefined;
  readonly onConflict: OnConflict;
}

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
 * Writes nothing. Memory stays flat: what a judgement needs to remember of every record is a number on disk.
 */
export async function surveySource(
  scope: Scope,
  context: MigrationContext,
  onChunk?: (entity: Entity, chunk: Chunk) => void,
): Promise<Survey> {
  const { workspace, organizations, issues, signal } = context;
  const checks = createChecks(workspace);
  const read = new Map<Entity, number>();
  const strangers = new Set<string>();
  let newest = 0;

  for (const entity of scope.entities) {
    for await (const chunk of chunksOf(scope, entity)) {
      signal.throwIfAborted();
      onChunk?.(entity, chunk);
      context.progress.advance(`reading ${entity}`, chunk.read, chunk.progress);
      read.set(entity, (read.get(entity) ?? 0) + chunk.read);
      for (const { where, reason } of chunk.invalid)
        issues.add({ entity, reason: 'invalid', where, detail: reason });
      for (const item of chunk.items) {
        const id = item.record.organizationId;
        if (entity === 'organizations') {
          await organizations.plan(id, organizationSettings(item.record as RecordOf['organizations']));
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
        for (const { check, side, key } of factsOf(checks, entity, item, organization))
          check.note(side, id, key);
        if (entity === 'profiles')
          newest = Math.max(newest, (item.record as RecordOf['profiles']).updatedAt ?? 0);
      }
    }
  }

  const concerned = allChecks(checks).filter((check) => check.settle());
  if (concerned.length > 0) await collect(scope, context, checks, concerned);
  const decisions = await judge(scope, context, checks);
  return { read, decisions, newest };
}

/** An entity of the scope, chunk by chunk. */
export function chunksOf<E extends Entity>(
  { source, organizationId, size, since }: Scope,
  entity: E,
  from?: { position: string; seq: number },
): AsyncGenerator<Chunk<E>> {
  return readChunks(source, entity, {
    organizationId,
    size,
    ...(entity === 'profiles' && { since }),
    from,
  });
}

function warn(issues: Issues, entity: Entity, item: Item): void {
  for (const detail of item.warnings ?? []) {
    const { organizationId } = item.record;
    issues.add({ entity, reason: 'unusual-value', where: item.where(), detail, organizationId });
  }
}

function createChecks(workspace: Workspace): Checks {
  const repeated = (): Crosscheck => createCrosscheck(workspace, 'repeated');
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
    denied: createCrosscheck(workspace, 'shared'),
    users: createCrosscheck(workspace, 'missing'),
    objects: createCrosscheck(workspace, 'missing'),
  };
}

function allChecks({ identity, names, denied, users, objects }: Checks): Crosscheck[] {
  return [...Object.values(identity), names, denied, users, objects];
}

/** What is collected of a record for the judgement. */
export interface Collected {
  entity: Entity;
  where: string;
  userId?: string;
  username?: string;
  updatedAt?: number;
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
        for (const { check, side, key } of factsOf(checks, entity, item, organization)) {
          if (!isConcerned.has(check) || !check.concerns(id, key)) continue;
          const { userId, username, updatedAt } = item.record as Partial<RecordOf['profiles']>;
          const collected = { entity, where: item.where(), userId, username, updatedAt };
          await check.collect(side, id, key, item.seq, collected);
        }
      }
    }
  }
}

/** Decisions for every entity, none made yet. */
export function createAllDecisions(workspace: Workspace): Record<Entity, Decisions> {
  return {
    organizations: createDecisions(workspace),
    'api-keys': createDecisions(workspace),
    objects: createDecisions(workspace),
    collections: createDecisions(workspace),
    profiles: createDecisions(workspace),
    denylist: createDecisions(workspace),
  };
}
