import { profileKey } from '../redis/keys.ts';
import type { MigrationContext } from './context.ts';
import { findExtras, type Extra } from './extras.ts';
import { formIn, type Organization } from './organizations.ts';
import type { Entity } from './records.ts';
import type { Scope } from './scope.ts';
import { unfenced } from './writer.ts';

const prunedAtOnce = 300;

/**
 * Removes what Redis has of these organizations and the source no longer has, save what was written here. Returns
 * how many records that were, by entity.
 */
export async function prune(
  scope: Scope,
  context: MigrationContext,
  among: ReadonlyMap<string, Organization>,
): Promise<Map<Entity, number>> {
  const pruned = new Map<Entity, number>();
  let batch: Extra[] = [];
  const flush = async (): Promise<void> => {
    const [first] = batch;
    if (first === undefined) return;
    const count = await pruneBatch(context, first, batch);
    pruned.set(first.entity, (pruned.get(first.entity) ?? 0) + count);
    batch = [];
  };
  for await (const extra of findExtras(scope, context, among)) {
    const [first] = batch;
    const isOther = first?.entity !== extra.entity || first.organization !== extra.organization;
    if (isOther || batch.length >= prunedAtOnce) await flush();
    batch.push(extra);
  }
  await flush();
  return pruned;
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
  const [, outcomes] = await unfenced({ organizations, organization }, async () => {
    const rows = extras.map(({ key }, position) => {
      if (entity === 'collections') return key.split('\u0003');
      const name = names[position] ?? '';
      return entity === 'profiles' ? [key, name, formIn(organization, name)] : [key];
    });
    return await store.migratePrune(organization.base, entity, organization.index, JSON.stringify(rows));
  });
  return outcomes.split('d').length - 1;
}
