import { inBatches } from '../../../lib/collections/batches.ts';
import { lengthLimit, type Decided, type Spool } from '../../analysis/spool.ts';
import type { MigrationContext } from '../../context/context.ts';
import { reportDenied, subjectOf } from '../../context/issues.ts';
import type { Outcome } from '../../context/outcomes.ts';
import { dryRun } from '../scripts.ts';
import { putRecords } from './put.ts';

/** Records that were compared with Redis, with the decisions on them. */
export interface Assessed {
  readonly spool: Spool;
  /** Whether to include records that differ but stay as they are in Redis. */
  readonly isVerifying: boolean;
}

/**
 * Entries to be written, or for a verify all that differ, in the form to be written: some of one entity at a time, `size`
 * at most. All others go to the tallies.
 */
export async function* entriesToWrite(
  context: MigrationContext,
  assessed: Assessed,
  size: number,
): AsyncGenerator<[Decided, ...Decided[]]> {
  const limits = { size, length: lengthLimit, kindOf: ({ entity }: Decided) => entity };
  for (const batch of inBatches(acceptedEntries(context, assessed), limits)) {
    const [first, ...others] = await withoutUnchanged(context, batch);
    if (first !== undefined) yield [first, ...others];
  }
}

/** Warns of denied names as well: here it is known which records are left out or lose their names. */
function* acceptedEntries(
  { tallies, issues }: MigrationContext,
  { spool, isVerifying }: Assessed,
): Generator<Decided> {
  const isSettled = (outcome: Outcome): boolean =>
    outcome === 'unchanged' || (!isVerifying && (outcome === 'kept' || outcome === 'newer'));
  for (const entry of spool.entries()) {
    const { entity, where, outcome, decision, isDenied, record } = entry;
    if (isDenied === true && entity === 'profiles' && decision === undefined)
      reportDenied(issues, where, subjectOf(record));
    if (decision === 'superseded') tallies.add(entity, record.organizationId, 'duplicate');
    else if (decision === 'refused') tallies.add(entity, record.organizationId, 'refused');
    else if (isSettled(outcome)) tallies.add(entity, record.organizationId, outcome);
    else if (decision === 'nameless') yield withoutUsername(entry);
    else yield entry;
  }
}

/** Leaves out entries that differed in their usernames alone, and lose these: Redis has none for their users either. */
async function withoutUnchanged(
  context: MigrationContext,
  entries: readonly [Decided, ...Decided[]],
): Promise<Decided[]> {
  const nameless = entries.filter(
    ({ decision, outcome, previous }) =>
      decision === 'nameless' && outcome === 'updated' && previous === undefined,
  );
  const results = await putRecords(dryRun(context), entries[0].entity, nameless);
  const unchanged = new Set(nameless.filter((_, position) => results[position]?.outcome === 'unchanged'));
  for (const { entity, record } of unchanged) context.tallies.add(entity, record.organizationId, 'unchanged');
  return entries.filter((entry) => !unchanged.has(entry));
}

/** An entry as it is written where another user has the username. */
export function withoutUsername(entry: Decided): Decided {
  const record = { ...entry.record };
  delete (record as { username?: string }).username;
  return { ...entry, record, decision: 'nameless' };
}
