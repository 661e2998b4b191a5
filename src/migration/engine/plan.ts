import { profileKey } from '../../redis/keys.ts';
import type { Outcome } from '../analysis/outcomes.ts';
import type { Decided } from '../analysis/spool.ts';
import type { Entity, RecordOf } from '../records/records.ts';
import { assessSource, entriesToWrite, type PruneChoice } from './read/assess.ts';
import type { Chosen } from './read/choose.ts';
import type { MigrationContext } from './context.ts';
import { subjectOf } from './issues.ts';
import { differencesOf } from './compare/differences.ts';

/** A record that would be changed, with the fields. */
export type Change = Awaited<ReturnType<typeof changesOf>>[number];

/** Changes of each entity that a plan shows. */
const shownChanges = 5;

/** Reads everything and writes nothing: what is wrong with the source, and what an apply would do. */
export async function makePlan({ scope, run }: Chosen, context: MigrationContext, choice: PruneChoice) {
  context.progress.begin(choice.prune === true ? 2 : 1);
  const assessment = await assessSource(scope, context, run, choice);
  context.signal.throwIfAborted();
  const sample = new Map<Entity, Decided[]>();
  for (const entry of entriesToWrite(context, assessment)) {
    const { entity } = entry;
    const outcome = await countPlanned(context, entry);
    const own = sample.get(entity) ?? [];
    if (outcome !== 'created' && own.length < shownChanges) sample.set(entity, [...own, entry]);
  }
  const changes = await Promise.all([...sample].map(([entity, own]) => changesOf(context, entity, own)));
  return { assessment, changes: changes.flat() };
}

/**
 * Counts what `apply` would make of an entry, and returns it. A username that somebody else has in Redis does not refuse
 * it: its holder gives the name up earlier in the same run.
 */
export async function countPlanned(
  { store, organizations, tallies }: MigrationContext,
  { entity, record, outcome }: Decided,
): Promise<Outcome> {
  let planned = outcome;
  if (outcome === 'taken') {
    const { organizationId, userId } = record as RecordOf['profiles'];
    const { base } = await organizations.find(organizationId);
    planned = (await store.exists(profileKey(base, userId))) === 1 ? 'updated' : 'created';
  }
  tallies.add(entity, record.organizationId, planned);
  return planned;
}

async function changesOf(context: MigrationContext, entity: Entity, entries: readonly Decided[]) {
  const differences = await differencesOf(context, entity, entries);
  return entries.map(({ where, record }, position) => {
    const { organizationId, userId } = subjectOf(record);
    return { entity, where, organizationId, userId, differences: differences[position] ?? [] };
  });
}
