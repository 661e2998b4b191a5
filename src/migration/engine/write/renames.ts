import { normalizedName } from '../../../domain/usernames.ts';
import { orderRenames, type Chain } from '../../analysis/chains.ts';
import type { Rename } from '../../analysis/names.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { groupBy } from '../../../lib/collections/group-by.ts';
import { pendingRenamesKey } from '../../../redis/keys.ts';
import type { MigrationContext } from '../context.ts';
import { withCurrentIndex } from '../current-index.ts';
import type { Organization } from '../organizations.ts';
import type { RunLock } from '../../runs/lock.ts';
import { migrateRename } from '../scripts.ts';

/** Renames of one call: some milliseconds of work at most. */
const renamedAtOnce = 200;
const recordedAtOnce = 1000;

type RenameContext = Pick<MigrationContext, 'store' | 'organizations' | 'epoch' | 'progress' | 'signal'>;
type Lock = Pick<RunLock, 'check'>;

/**
 * Makes renames that depend on each other. All of an organization's are recorded in Redis before the first one is made,
 * and each is removed from the record by the script that makes it; so an interrupted run loses no name, and the next
 * one completes the rest. A cycle is one script; a longer chain is made from its free end, where every user has the old
 * or the new name at any time. Returns how many are left because of the signal.
 */
export async function makeRenames(
  context: RenameContext,
  lock: Lock,
  renames: readonly Rename[],
): Promise<number> {
  const { store, organizations } = context;
  const groups = groupBy(renames, ({ organizationId }) => organizationId);
  for (const [id, own] of groups) {
    const { base } = await organizations.find(id);
    for (const batch of inBatches(own, { size: recordedAtOnce })) {
      await lock.check();
      const record = batch.map(({ userId, from, to }) => [userId, JSON.stringify([from, to])] as const);
      await store.hset(pendingRenamesKey(base), new Map(record));
    }
  }
  return await completeRenames(context, lock, [...groups.keys()]);
}

/** Makes the renames that are on record; how many are left, because the signal came. */
export async function completeRenames(
  context: RenameContext,
  lock: Lock,
  organizationIds: readonly string[],
): Promise<number> {
  const { store, organizations } = context;
  let left = 0;
  for (const id of organizationIds) {
    const organization = await organizations.find(id);
    const pending = await store.hgetall(pendingRenamesKey(organization.base));
    const renames = Object.entries(pending).map(([userId, record]): Rename => {
      const [from, to] = JSON.parse(record) as [string, string];
      return { organizationId: id, userId, from, to };
    });
    left += await renameIn(context, lock, organization, renames);
  }
  return left;
}

/** How many renames of these organizations are recorded. */
export async function countPendingRenames(
  { store, organizations }: Pick<MigrationContext, 'store' | 'organizations'>,
  organizationIds: readonly string[],
): Promise<number> {
  const counts = organizationIds.map(async (id) => {
    const { base } = await organizations.find(id);
    return await store.hlen(pendingRenamesKey(base));
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

async function renameIn(
  context: RenameContext,
  lock: Lock,
  organization: Organization,
  renames: readonly Rename[],
): Promise<number> {
  const chains = orderRenames(renames, (name) => normalizedName(name, organization.settings.comparison));
  let left = renames.length;
  for (const { steps, isCycle } of chains) {
    for (const batch of inBatches(steps, { size: isCycle ? undefined : renamedAtOnce })) {
      if (context.signal.aborted) return left;
      await lock.check();
      await renameOnce(context, organization, { steps: batch, isCycle });
      left -= batch.length;
      context.progress.advance('renaming users', batch.length, 1 - left / renames.length);
    }
  }
  return left;
}

async function renameOnce(
  { store, organizations, epoch }: RenameContext,
  organization: Organization,
  { steps, isCycle }: Chain,
): Promise<void> {
  await withCurrentIndex({ organizations, organization }, async () => {
    // The organization's comparison may have changed while this waited.
    const rows = steps.map(({ userId, from, to }) => [
      userId,
      from,
      normalizedName(from, organization.settings.comparison),
      to,
      normalizedName(to, organization.settings.comparison),
    ]);
    const { base, index } = organization;
    return await migrateRename(store, base, epoch, index, isCycle ? 'cycle' : 'chain', JSON.stringify(rows));
  });
}
