import { inBatches } from '../../../lib/collections/batches.ts';
import { isChange } from '../../context/outcomes.ts';
import { lengthLimit, type Decided } from '../../analysis/spool.ts';
import type { OnConflict, Scope } from '../../sources/scope.ts';
import { entriesToWrite, mayBeUnchanged, withoutUsername, type Assessment } from '../read/assess.ts';
import type { MigrationContext } from '../../context/context.ts';
import { subjectOf } from '../../context/issues.ts';
import { withOrderedPool } from '../ordered-pool.ts';
import type { RoundKeeper } from '../round-keeper.ts';
import type { Pacer } from './pacer.ts';
import { putRecords } from './put.ts';
import { dryRun } from '../scripts.ts';

/**
 * Writes the accepted entries of an assessment in order, `size` in one call at most, and counts their outcomes; the
 * keeper gets the share that is written. Stops between two batches on the signal.
 */
export async function writeEntries(
  context: MigrationContext,
  assessment: Assessment,
  keeper: RoundKeeper,
  pacer: Pacer,
  { size, concurrency, onConflict }: Scope,
): Promise<void> {
  const { signal, progress } = context;
  const total = Math.max(1, assessment.spool.size);
  const limits = { size, length: lengthLimit, kindOf: ({ entity }: Decided) => entity };
  let passed = 0;
  let last: Decided['entity'] | undefined;
  await withOrderedPool(concurrency, async (pool) => {
    for (const batch of inBatches(entriesToWrite(context, assessment), limits)) {
      const [{ entity }] = batch;
      if (entity !== last) await pool.drain();
      last = entity;
      await pacer.wait(batch.length);
      if (signal.aborted) break;
      const share = Math.min(1, (passed += batch.length) / total);
      progress.advance(`writing ${entity}`, batch.length, share);
      await pool.add(writeBatch(context, batch, onConflict), () => keeper.written(share));
    }
  });
}

async function writeBatch(
  context: MigrationContext,
  entries: readonly [Decided, ...Decided[]],
  onConflict: OnConflict,
): Promise<void> {
  const put = async (by: MigrationContext) => await putRecords(by, entries[0].entity, entries);
  await context.beforeChange(async () =>
    (await put(dryRun(context))).some(({ outcome }) => isChange(outcome)),
  );
  const results = await put(context);
  const nameless: Decided[] = [];
  for (const [position, entry] of entries.entries()) {
    const { entity, record, where, outcome: before } = entry;
    const result = results[position];
    if (result === undefined) continue;
    // A rename, or the loading of its organization, may have written it already.
    const isWritten = result.outcome === 'unchanged' && !mayBeUnchanged(entry);
    const isTaken = result.outcome === 'taken';
    if (isTaken && onConflict === 'drop-username') nameless.push(withoutUsername(entry));
    else context.tallies.add(entity, record.organizationId, isWritten ? before : result.outcome);
    if (!isTaken) continue;
    // The bridge keeps working meanwhile.
    const subject = subjectOf(record);
    const detail = `username ${JSON.stringify(subject.username)} has just been taken by user ${JSON.stringify(result.holder)}`;
    context.issues.add({ entity, reason: 'username-conflict', where, detail, ...subject });
  }
  const [first, ...others] = nameless;
  if (first !== undefined) await writeBatch(context, [first, ...others], onConflict);
}
