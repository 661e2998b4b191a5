import { orderRenames } from '../../analysis/chains.ts';
import { totalOf } from '../../../lib/numbers.ts';
import type { Rename } from '../../analysis/names.ts';
import { inBatches } from '../../../lib/collections/batches.ts';
import { groupBy } from '../../../lib/collections/group-by.ts';
import { organizationBase, pendingRenamesKey } from '../../../redis/keys.ts';
import { runOrganizations, type RunStore } from '../../runs/runs.ts';
import type { MigrationContext } from '../../context/context.ts';
import { withCurrentIndex } from '../current-index.ts';
import { normalizedIn, type Organization } from '../../context/organizations.ts';
import { migrateRename } from '../scripts.ts';

/** Renames of one call: some milliseconds of work at most. */
const renamedAtOnce = 200;
const recordedAtOnce = 1000;

/**
 * Makes renames that depend on each other. All of an organization's are recorded in Redis before the first one is made,
 * and each is removed from the record by the script that makes it; so an interrupted run loses no name, and the next
 * one completes the rest. A cycle is one script; a longer chain is made from its free end, where every user has the old
 * or the new name at any time. Returns how many are left because of the signal.
 */
export async function makeRenames(context: MigrationContext, renames: readonly Rename[]): Promise<number> {
  const groups = groupBy(renames, ({ organizationId }) => organizationId);
  for (const [id, own] of groups) {
    const organization = await context.organizations.find(id);
    for (const batch of inBatches(own, { size: recordedAtOnce })) {
      await sendRenames(context, organization, 'record', batch);
    }
  }
  let left = renames.length;
  // Not all that are on record: the source of another run may say otherwise.
  for (const [id, own] of groups) left -= await makeRecorded(context, id, own);
  return left;
}

/** Makes the renames on record in these organizations; returns how many it made, and how many the signal left pending. */
export async function completeRenames(
  context: MigrationContext,
  organizationIds: readonly string[],
): Promise<{ completed: number; pending: number }> {
  let [completed, pending] = [0, 0];
  for (const id of organizationIds) {
    const { base } = await context.organizations.find(id);
    const recorded = await context.store.hgetall(pendingRenamesKey(base));
    const renames = Object.entries(recorded).map(([userId, record]): Rename => {
      const [from, to] = JSON.parse(record) as [string, string];
      return { organizationId: id, userId, from, to };
    });
    const made = await makeRecorded(context, id, renames);
    completed += made;
    pending += renames.length - made;
  }
  return { completed, pending };
}

/** Makes these recorded renames until the signal comes; returns how many it has made. */
async function makeRecorded(
  context: MigrationContext,
  organizationId: string,
  renames: readonly Rename[],
): Promise<number> {
  const { organizations, progress, signal } = context;
  const organization = await organizations.find(organizationId);
  const chains = orderRenames(renames, (name) => normalizedIn(organization, name));
  let done = 0;
  for (const { steps, isCycle } of chains) {
    for (const batch of inBatches(steps, { size: isCycle ? undefined : renamedAtOnce })) {
      if (signal.aborted) break;
      await context.beforeChange();
      await sendRenames(context, organization, 'make', batch);
      done += batch.length;
      progress.advance('renaming users', batch.length, done / renames.length);
    }
  }
  return done;
}

/** How many renames are on record in the organizations of a run. */
export async function countPendingRenames(runStore: RunStore, run: string): Promise<number> {
  const { store, prefix } = runStore;
  const keys = (await runOrganizations(runStore, run)).map((id) =>
    pendingRenamesKey(organizationBase(prefix, id)),
  );
  const counts = await Promise.all(keys.map((key) => store.hlen(key)));
  return totalOf(counts);
}

async function sendRenames(
  context: MigrationContext,
  organization: Organization,
  kind: 'record' | 'make',
  renames: readonly Rename[],
): Promise<void> {
  const makeRows = () =>
    renames.map(({ userId, from, to }) => [
      userId,
      from,
      normalizedIn(organization, from),
      to,
      normalizedIn(organization, to),
    ]);
  await withCurrentIndex(context, organization, migrateRename, makeRows, kind);
}
