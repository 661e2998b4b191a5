import { profileKey } from '../../../redis/keys.ts';
import { splitCollectionIdentity } from '../../analysis/identity.ts';
import type { MigrationContext } from '../../context/context.ts';
import { migratePrune } from '../scripts.ts';
import { requireSameIndex, withCurrentIndex } from '../current-index.ts';
import { normalizedIn } from '../../context/organizations.ts';
import type { StoredGroup } from './scan.ts';

/**
 * Removes records of one entity and organization, except what was written here, through the bridge or by its operator,
 * or adopted from the legacy service since the source's snapshot. Says of each whether it was removed; in a dry run,
 * whether it would be.
 */
export async function removeRecords(
  context: MigrationContext,
  { entity, organization, keys }: StoredGroup,
): Promise<boolean[]> {
  const { store } = context;
  const { base } = organization;
  const names =
    entity === 'profiles' ? await Promise.all(keys.map((key) => store.hget(profileKey(base, key), 'u'))) : [];
  const makeRows = () => {
    // Their keys are names.
    if (entity === 'denylist') requireSameIndex(organization);
    return keys.map((key, position) => {
      if (entity === 'collections') return splitCollectionIdentity(key);
      const name = names[position] ?? '';
      return entity === 'profiles' ? [key, name, normalizedIn(organization, name)] : [key];
    });
  };
  const [, outcomes] = await withCurrentIndex(context, organization, migratePrune, makeRows, entity);
  return outcomes.map((outcome) => outcome === 'removed');
}
