import { profileKey } from '../../redis/keys.ts';
import type { MigrationContext } from './context.ts';
import { emptySearch, findExtras, type Extra } from './extras.ts';
import { normalizedIn, type Organization } from './organizations.ts';
import type { Entity } from '../records/records.ts';
import type { Scope } from '../sources/scope.ts';
import { withCurrentIndex } from './current-index.ts';

const prunedAtOnce = 300;

export interface Pruned {
  /** Records removed, by entity. */
  removed: ReadonlyMap<Entity, number>;
  /** Entities that keep what looks vanished, and how many of their rows in the source are no records. */
  spared: ReadonlyMap<Entity, number>;
}

/**
 * Removes what Redis has of these organizations and the source no longer has, save what was written here. A row
 * that is no record may be any of what looks vanished: where there is one, nothing of its entity is removed.
 */
export async function prune(
  scope: Scope,
  context: MigrationContext,
  among: ReadonlyMap<string, Organization>,
): Promise<Pruned> {
  const removed = new Map<Entity, number>();
  const spared = new Map<Entity, number>();
  const searched = emptySearch();
  let batch: Extra[] = [];
  const flush = async (): Promise<void> => {
    const [first] = batch;
    if (first === undefined) return;
    const count = await pruneBatch(context, first, batch);
    removed.set(first.entity, (removed.get(first.entity) ?? 0) + count);
    batch = [];
  };
  for await (const extra of findExtras(scope, context, among, searched)) {
    const unreadable = searched.unreadable.get(extra.entity);
    if (unreadable !== undefined) {
      spared.set(extra.entity, unreadable);
      continue;
    }
    const [first] = batch;
    const isOther = first?.entity !== extra.entity || first.organization !== extra.organization;
    if (isOther || batch.length >= prunedAtOnce) await flush();
    batch.push(extra);
  }
  await flush();
  return { removed, spared };
}

async function pruneBatch(
  { store, organizations }: MigrationContext,
  { entity, organization }: Extra,
  extras: readonly Extra[],
): Promise<number> {
  const names =
    entity === 'profiles'
      ? await Promise.all(extras.map(({ key }) => store.hget(profileKey(organization.base, key), 'u')))
      : [];
  const [, outcomes] = await withCurrentIndex({ organizations, organization }, async () => {
    const rows = extras.map(({ key }, position) => {
      if (entity === 'collections') return key.split('\u0003');
      const name = names[position] ?? '';
      return entity === 'profiles' ? [key, name, normalizedIn(organization, name)] : [key];
    });
    return await store.migratePrune(organization.base, entity, organization.index, JSON.stringify(rows));
  });
  return outcomes.split('d').length - 1;
}
