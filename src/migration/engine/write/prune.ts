import { profileKey } from '../../../redis/keys.ts';
import { createSorter, type Sorter } from '../../analysis/sorter.ts';
import { entityNames, type Entity } from '../../records/records.ts';
import type { MigrationContext } from '../context.ts';
import { withCurrentIndex } from './current-index.ts';
import type { Extra, Extras } from '../compare/extras.ts';
import { placeOf } from '../compare/extras.ts';
import { normalizedIn, type Organization } from '../organizations.ts';
import type { Reading } from '../read/reading.ts';
import { migratePrune } from '../scripts.ts';

/** What a prune is to remove. */
export interface PrunePlan {
  /** Records to remove, by entity. */
  toRemove: ReadonlyMap<Entity, number>;
  /** Entities that keep what looks gone, and how many of their rows in the source are no records. */
  spared: ReadonlyMap<Entity, number>;
  /** Why this must not be done without --prune-at-most; undefined where it may. */
  refusal: string | undefined;
  records: Sorter;
}

export interface Pruned {
  removed: ReadonlyMap<Entity, number>;
  spared: ReadonlyMap<Entity, number>;
}

/** The share of an entity that is removed without --prune-at-most. */
const usualShare = 0.1;
const prunedAtOnce = 300;

/**
 * Finds what Redis has of these organizations and the source no longer has, except what was written here. A row that
 * is no record may be any of what looks gone: where there is one, nothing of its entity is removed.
 */
export async function planPrune(
  context: MigrationContext,
  reading: Reading,
  extras: Extras,
  among: ReadonlyMap<string, Organization>,
  atMost: number | undefined,
): Promise<PrunePlan> {
  const toRemove = new Map<Entity, number>();
  const spared = new Map<Entity, number>();
  const stored = new Map<Entity, number>();
  const records = createSorter(context.workspace);
  for await (const extra of extras.find(among, stored)) {
    if (extra.isLocal) continue;
    const { entity, organization, key } = extra;
    const invalid = reading.invalid.get(entity) ?? 0;
    if (invalid > 0) {
      spared.set(entity, invalid);
      continue;
    }
    toRemove.set(entity, (toRemove.get(entity) ?? 0) + 1);
    records.add(JSON.stringify([entity, organization.id, key]));
    context.issues.add({
      entity,
      reason: 'to-prune',
      where: placeOf(extra),
      detail: 'is not in the source: --prune removes it',
      organizationId: organization.id,
      ...(entity === 'profiles' && { userId: key }),
    });
  }
  return { toRemove, spared, records, refusal: refusalOf(reading, toRemove, stored, atMost) };
}

function refusalOf(
  { read }: Reading,
  toRemove: ReadonlyMap<Entity, number>,
  stored: ReadonlyMap<Entity, number>,
  atMost: number | undefined,
): string | undefined {
  let sum = 0;
  for (const count of toRemove.values()) sum += count;
  if (atMost !== undefined) {
    return sum > atMost
      ? `--prune would remove ${sum} records, more than --prune-at-most ${atMost}`
      : undefined;
  }
  for (const entity of entityNames) {
    const count = toRemove.get(entity) ?? 0;
    const all = stored.get(entity) ?? 0;
    if (count === 0 || ((read.get(entity) ?? 0) > 0 && count <= all * usualShare)) continue;
    const why = (read.get(entity) ?? 0) === 0 ? `the source has no ${entity} at all, and ` : '';
    return `${why}--prune would remove ${count} of ${all} ${entity}`;
  }
  return undefined;
}

/** Removes what was planned. What was written here since stays. */
export async function prune(context: MigrationContext, plan: PrunePlan): Promise<Pruned> {
  const removed = new Map<Entity, number>();
  const all = [...plan.toRemove.values()].reduce((sum, count) => sum + count, 0);
  let done = 0;
  let batch: Extra[] = [];
  const flush = async (): Promise<void> => {
    const [first] = batch;
    if (first === undefined) return;
    const count = await pruneBatch(context, first, batch);
    removed.set(first.entity, (removed.get(first.entity) ?? 0) + count);
    done += batch.length;
    context.progress.advance('pruning', count, done / all);
    batch = [];
  };
  for (const line of plan.records.sorted()) {
    if (context.signal.aborted) break;
    const [entity, id, key] = JSON.parse(line) as [Entity, string, string];
    const organization = await context.organizations.find(id);
    const [first] = batch;
    const isOther = first?.entity !== entity || first.organization !== organization;
    if (isOther || batch.length >= prunedAtOnce) await flush();
    batch.push({ entity, organization, key, isLocal: false });
  }
  await flush();
  return { removed, spared: plan.spared };
}

async function pruneBatch(
  { store, organizations, epoch, snapshotAt, marksFrom }: MigrationContext,
  { entity, organization }: Extra,
  extras: readonly Extra[],
): Promise<number> {
  const names =
    entity === 'profiles'
      ? await Promise.all(extras.map(({ key }) => store.hget(profileKey(organization.base, key), 'u')))
      : [];
  const [, count] = await withCurrentIndex({ organizations, organization }, async () => {
    const rows = extras.map(({ key }, position) => {
      if (entity === 'collections') return key.split('\u0003');
      const name = names[position] ?? '';
      return entity === 'profiles' ? [key, name, normalizedIn(organization, name)] : [key];
    });
    const { base, index } = organization;
    return await migratePrune(
      store,
      base,
      epoch,
      index,
      entity,
      JSON.stringify(rows),
      snapshotAt ?? '',
      marksFrom,
    );
  });
  return count;
}
