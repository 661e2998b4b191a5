import { inBatches } from '../../../lib/collections/batches.ts';
import { counted, formatNumber, totalOf } from '../../../lib/numbers.ts';
import { createSorter } from '../../../lib/bounded-memory/sorter.ts';
import { entityNames, type Entity } from '../../records/records.ts';
import type { MigrationContext } from '../../context/context.ts';
import { recheckIndexes } from '../current-index.ts';
import type { Extras } from '../compare/extras.ts';
import type { Reading } from '../read/reading.ts';
import { removeRecords } from '../stored/remove.ts';
import { aboutStored, groupOf, lineOf, recordsOf } from '../stored/scan.ts';

/** What a prune is to remove. */
export type PrunePlan = Awaited<ReturnType<typeof planPrune>>;

/** Numbers of records, by entity. */
export type Pruned = ReadonlyMap<Entity, number>;

/** The share of an entity that is removed without --prune-at-most. */
const defaultShare = 0.1;
const prunedAtOnce = 300;

/**
 * Finds what Redis has and the source no longer has, except what was written here, or adopted since the source's
 * snapshot. A row that is not a record may be any of the missing ones: if there is one, nothing of its entity is
 * removed.
 */
export async function planPrune(
  context: MigrationContext,
  reading: Reading,
  extras: Extras,
  atMost: number | undefined,
) {
  const toRemove = new Map<Entity, number>();
  const spared = new Map<Entity, number>();
  const records = createSorter(context.workspace);
  for await (const extra of extras.find()) {
    const { entity } = extra;
    if (extra.isLocal || entity === 'organizations') continue;
    const invalid = context.issues.count('invalid', entity);
    if (invalid > 0) {
      spared.set(entity, invalid);
      continue;
    }
    toRemove.set(entity, (toRemove.get(entity) ?? 0) + 1);
    records.add(lineOf(extra));
    const detail = 'is not in the source: --prune removes it';
    context.issues.add({ ...aboutStored(extra), reason: 'to-prune', detail });
  }
  await recheckIndexes(context, extras.organizations());
  return {
    /** Records to remove, by entity. */
    toRemove,
    /** Entities whose missing records are kept, and how many of their rows in the source are not records. */
    spared,
    /** Why this requires --prune-at-most; undefined if it does not. */
    refusal: refusalOf(reading, toRemove, extras, atMost),
    /** The records to remove, as lines. */
    records,
  };
}

function refusalOf(
  { read }: Reading,
  toRemove: ReadonlyMap<Entity, number>,
  { stored }: Extras,
  atMost: number | undefined,
): string | undefined {
  const sum = totalOf(toRemove.values());
  if (atMost !== undefined) {
    return sum > atMost
      ? `--prune would remove ${counted(sum, 'record')}, more than --prune-at-most ${atMost}`
      : undefined;
  }
  for (const entity of entityNames) {
    const count = toRemove.get(entity) ?? 0;
    const all = stored.get(entity) ?? 0;
    const isAbsent = (read.get(entity) ?? 0) === 0;
    if (count === 0 || (!isAbsent && count <= all * defaultShare)) continue;
    const records = entity === 'denylist' ? 'denied names' : entity;
    const why = isAbsent ? `the source has no ${records} at all, and ` : '';
    return `${why}--prune would remove ${formatNumber(count)} of ${formatNumber(all)} ${records}`;
  }
  return undefined;
}

/** Removes what was planned, and counts it. What was written or adopted here since stays. */
export async function prune(context: MigrationContext, plan: PrunePlan): Promise<Pruned> {
  const removed = new Map<Entity, number>();
  const all = totalOf(plan.toRemove.values());
  let done = 0;
  for (const batch of inBatches(plan.records.sorted(), { size: prunedAtOnce, kindOf: groupOf })) {
    if (context.signal.aborted) break;
    const group = await recordsOf(context, batch);
    await context.beforeChange();
    const count = (await removeRecords(context, group)).filter(Boolean).length;
    removed.set(group.entity, (removed.get(group.entity) ?? 0) + count);
    done += batch.length;
    context.progress.advance('pruning', count, done / all);
  }
  return removed;
}
