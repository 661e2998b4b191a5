import type { MigrationContext } from './context.ts';
import type { Chunk, Item } from '../sources/chunks.ts';
import type { DecisionReader } from '../analysis/decisions.ts';
import { createRenames, type Release } from './renames.ts';
import type { Organizations } from './organizations.ts';
import type { Entity, RecordOf } from '../records/records.ts';
import { chunksOf, type Scope } from '../sources/scope.ts';
import type { Survey } from '../analysis/survey.ts';
import { createOrderedPool } from './ordered-pool.ts';
import { emptyTally, type Notes, type Tally } from './writer.ts';

export interface DryRun {
  /** What would become of the records. */
  readonly tallies: Readonly<Record<string, Tally>>;
  readonly releases: readonly Release[];
}

/** A chunk's records as they are to be brought in, by the decisions on them. */
export async function applyDecisions<E extends Entity>(
  chunk: Chunk<E>,
  decisions: DecisionReader,
): Promise<readonly Item<E>[]> {
  const own = await decisions.upTo(chunk.endSeq);
  if (own.size === 0) return chunk.items;
  const items: Item<E>[] = [];
  for (const item of chunk.items) {
    const decision = own.get(item.seq);
    if (decision === undefined) items.push(item);
    else if (decision === 'nameless') {
      const record = { ...item.record };
      if ('username' in record) delete (record as { username?: string }).username;
      items.push(item.with(record));
    }
  }
  return items;
}

/**
 * Asks Redis what an apply would do with each record that the survey lets through. A username that another user has
 * in Redis is a conflict, unless that user gets another one in the source. Writes nothing.
 */
export async function dryRun(scope: Scope, context: MigrationContext, survey: Survey): Promise<DryRun> {
  const tallies: Record<string, Tally> = {};
  const names = createRenames(context);
  const notes: Notes = { ...names.notes, ...warningsFor(context) };
  for (const entity of scope.entities) {
    const tally = emptyTally();
    tallies[entity] = tally;
    if (!isAnyThere(context.organizations)) {
      tally.created = (survey.read.get(entity) ?? 0) - leftOut(survey, context, entity);
      continue;
    }
    const decisions = survey.decisions[entity].reader();
    const window = createOrderedPool<Tally>(context.concurrency, (own) => addTo(tally, own));
    for await (const chunk of chunksOf(scope, entity)) {
      context.signal.throwIfAborted();
      context.progress.advance(`comparing ${entity} with Redis`, chunk.read, chunk.progress);
      const items = await applyDecisions(chunk, decisions);
      await window.add(context.writer.put(entity, items, 'dry', notes));
      await names.flush();
    }
    await window.drain();
    await names.flush();
  }
  const taken = await names.settle(scope.onConflict, survey.decisions.profiles);
  const profiles = tallies['profiles'];
  if (profiles !== undefined) {
    profiles.updated += taken.resolved;
    profiles.taken = 0;
  }
  return { tallies, releases: taken.releases };
}

/** What only Redis can tell of a record that is taken as it is. */
function warningsFor({ issues }: MigrationContext): Notes {
  return {
    onDenied: (entity, item) => {
      const { organizationId, userId, username } = item.record as Partial<RecordOf['profiles']>;
      const detail =
        entity === 'profiles'
          ? `username ${JSON.stringify(username)} is on the denylist: it is kept`
          : `${JSON.stringify(username)} is denied, and a user's name: both are kept`;
      issues.add({
        entity,
        reason: 'denied-name-in-use',
        where: item.where(),
        detail,
        ...(organizationId !== undefined && { organizationId }),
        ...(userId !== undefined && { userId }),
        ...(username !== undefined && { username }),
      });
    },
    onComparisonKept: (item) => {
      const { organizationId } = item.record;
      issues.add({
        entity: 'organizations',
        reason: 'comparison-kept',
        where: item.where(),
        detail: `organization ${JSON.stringify(organizationId)} goes on comparing names as it does: profile-bridge admin org set changes that`,
        organizationId,
      });
    },
  };
}

function isAnyThere(organizations: Organizations): boolean {
  return organizations.all().some(({ exists }) => exists);
}

function leftOut({ decisions }: Survey, { issues }: MigrationContext, entity: Entity): number {
  const own = decisions[entity];
  return issues.count('invalid', entity) + own.count('superseded') + own.count('refused');
}

/** Adds a tally to another. */
export function addTo(sum: Tally, own: Tally): void {
  for (const outcome of Object.keys(own) as (keyof Tally)[]) sum[outcome] += own[outcome];
}
