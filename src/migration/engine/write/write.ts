import type { Decided } from '../../analysis/spool.ts';
import type { OnConflict, Scope } from '../../sources/scope.ts';
import type { MigrationContext } from '../../context/context.ts';
import { subjectOf } from '../../context/issues.ts';
import { withOrderedPool } from '../../../lib/collections/ordered-pool.ts';
import type { RoundKeeper } from '../round-keeper.ts';
import { entriesToWrite, withoutUsername, type Assessed } from './entries.ts';
import type { Pacer } from './pacer.ts';
import { putRecords } from './put.ts';

/**
 * Writes the accepted entries of an assessment in order, `size` in one call at most, and counts their outcomes; the
 * keeper gets the share that is written. Stops between two batches on the signal.
 */
export async function writeEntries(
  context: MigrationContext,
  assessed: Assessed,
  keeper: RoundKeeper,
  pacer: Pacer,
  { size, concurrency, onConflict }: Scope,
): Promise<void> {
  const { signal, progress } = context;
  const total = Math.max(1, assessed.spool.size);
  let passed = 0;
  let last: Decided['entity'] | undefined;
  await withOrderedPool(concurrency, async (pool) => {
    for await (const batch of entriesToWrite(context, assessed, size)) {
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
  await context.beforeChange();
  const results = await putRecords(context, entries[0].entity, entries);
  const nameless: Decided[] = [];
  for (const [position, entry] of entries.entries()) {
    const { entity, record, where, outcome: before } = entry;
    const result = results[position];
    if (result === undefined) continue;
    // A rename, or the loading of its organization, may have written it already.
    const outcome = result.outcome === 'unchanged' ? before : result.outcome;
    const isTaken = outcome === 'taken';
    // Without its username, it may differ in nothing.
    if (isTaken && onConflict === 'drop-username')
      nameless.push({ ...withoutUsername(entry), outcome: 'unchanged' });
    else context.tallies.add(entity, record.organizationId, outcome);
    if (!isTaken) continue;
    // The bridge keeps working meanwhile.
    const subject = subjectOf(record);
    const detail = `username ${JSON.stringify(subject.username)} has just been taken by user ${JSON.stringify(result.holder)}`;
    context.issues.add({ entity, reason: 'username-conflict', where, detail, ...subject });
  }
  const [first, ...others] = nameless;
  if (first !== undefined) await writeBatch(context, [first, ...others], onConflict);
}
