import type { Decided } from '../analysis/spool.ts';
import type { Entity } from '../records/records.ts';
import { assessSource, type Assessment, type PruneChoice } from './assess.ts';
import { entriesToWrite } from './write/entries.ts';
import type { Chosen } from './read/choose.ts';
import type { MigrationContext } from '../context/context.ts';
import { subjectOf } from '../context/issues.ts';
import { differencesOf } from './compare/differences.ts';

/** A record that would be changed, with the fields. */
export type Change = Awaited<ReturnType<typeof changesOf>>[number];

/** Changes of each entity that a plan shows. */
const shownChanges = 5;
const lookedUpAtOnce = 500;

/** Reads everything and writes nothing: what is wrong with the source, and what an apply would do. */
export async function makePlan({ scope, run }: Chosen, context: MigrationContext, choice: PruneChoice) {
  context.progress.begin(choice.prune === true ? 2 : 1);
  const assessment = await assessSource(scope, context, run, choice);
  context.signal.throwIfAborted();
  const sample = new Map<Entity, Decided[]>();
  await countPlanned(context, assessment, (entry) => {
    const own = sample.get(entry.entity) ?? [];
    if (entry.outcome === 'updated' && own.length < shownChanges) sample.set(entry.entity, [...own, entry]);
  });
  const changes = await Promise.all([...sample].map(([entity, own]) => changesOf(context, entity, own)));
  return { assessment, changes: changes.flat() };
}

/** Counts what `apply` would make of the entries of an assessment. */
export async function countPlanned(
  context: MigrationContext,
  assessment: Assessment,
  onPlanned?: (entry: Decided) => void,
): Promise<void> {
  for await (const batch of entriesToWrite(context, assessment, lookedUpAtOnce)) {
    for (const entry of batch) {
      context.tallies.add(entry.entity, entry.record.organizationId, entry.outcome);
      onPlanned?.(entry);
    }
  }
}

async function changesOf(context: MigrationContext, entity: Entity, entries: readonly Decided[]) {
  const differences = await differencesOf(context, entity, entries);
  return entries.map(({ where, record }, position) => {
    const { organizationId, userId } = subjectOf(record);
    return { entity, where, organizationId, userId, differences: differences[position] ?? [] };
  });
}
