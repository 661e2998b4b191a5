import { cutoverKey, cutoverKeys, loadingKey, settingsKey } from '../../../redis/keys.ts';
import type { LockedContext } from '../../runs/lock.ts';
import { readRun, unfinishedLoadsKey } from '../../runs/runs.ts';
import type { MigrationContext } from '../../context/context.ts';
import { MigrationError } from '../../errors.ts';
import type { Organization } from '../../context/organizations.ts';
import { migrateClaim, migrateRollBack } from '../scripts.ts';
import { scanOrganizations } from '../stored/scan.ts';

/**
 * Makes an organization that Redis does not know this attempt's to load, until a later attempt of the run takes it over
 * or a switch of the mode takes it away (lua/cutover/raise_epoch.lua).
 */
export async function beginLoad(context: LockedContext, { id, base }: Organization): Promise<void> {
  const { store, prefix, claim, lock } = context;
  const unfinished = unfinishedLoadsKey(prefix, lock.run);
  await store.sadd(unfinished, id);
  const [outcome, owner] = await migrateClaim(store, base, claim, 'load');
  if (outcome === 'begun') {
    // Whoever has rolled the run back meanwhile has removed it; what was begun must be found.
    await store.sadd(unfinished, id);
    // A process that has taken over, or a switch of the mode, may not have found it begun.
    await lock.check();
    return await refuseOutdated(context);
  }
  await store.srem(unfinished, id);
  if (outcome === 'exists') return await reportLost(context, id);
  if (outcome === 'damaged') {
    throw new MigrationError(
      `organization ${JSON.stringify(id)} has data and no settings, and loading it would overwrite the data: restore ${settingsKey(base)} from a backup; profile-bridge admin fsck says what to do without one`,
    );
  }
  throw new MigrationError(
    `organization ${JSON.stringify(id)} is being loaded by run ${owner}: wait until it has ended, finish it with its own apply, or roll it back with profile-bridge migrate forget --run ${owner}`,
  );
}

/** Throws the reason why this attempt may no longer load an organization. */
export async function reportLost(context: LockedContext, id: string): Promise<never> {
  await refuseOutdated(context);
  await context.lock.check();
  throw new MigrationError(
    `organization ${JSON.stringify(id)} was changed by another tool while it was loaded, or lost in a failover of Redis: run the same command again`,
  );
}

async function refuseOutdated({ store, prefix, epoch }: MigrationContext): Promise<void> {
  const current = Number(await store.hget(cutoverKey(prefix), 'epoch'));
  if (epoch < current)
    throw new Error(`OUTDATED the load was begun under epoch ${epoch}, now it is ${current}`);
}

/**
 * Takes over the organizations that the run has begun to load and not finished: no earlier attempt, however long it was
 * paused, writes into them from now on.
 */
export async function takeOver(context: LockedContext): Promise<Organization[]> {
  const { store, prefix, organizations, claim, lock } = context;
  const unfinished = unfinishedLoadsKey(prefix, lock.run);
  const taken: Organization[] = [];
  for (const id of await store.smembers(unfinished)) {
    const organization = await organizations.find(id);
    const [outcome] = await migrateClaim(store, organization.base, claim, 'load');
    if (outcome === 'begun') taken.push(organization);
    else await store.srem(unfinished, id);
  }
  return taken;
}

/**
 * Removes everything of the organizations that a run has begun to load, and returns their ids. What the cut-over has on
 * record of them stays, such as changes that may be missing here. Ignores the signal.
 */
export async function rollBack(context: LockedContext): Promise<string[]> {
  const { store, prefix, progress, claim, lock } = context;
  const state = await readRun(context, lock.run);
  if (state?.loaded !== undefined) await lock.save({ ...state, loaded: undefined });
  const taken = await takeOver(context);
  const remove = async ({ id, base }: Organization, keys: readonly string[]): Promise<void> => {
    progress.advance('rolling back', keys.length, 0);
    const outcome = await migrateRollBack(store, base, claim, ...keys);
    if (outcome === 'lost') await reportLost(context, id);
  };
  for await (const { organization, suffixes } of scanOrganizations(context, taken)) {
    const { base } = organization;
    const keys = suffixes
      .map((suffix) => base + suffix)
      .filter((key) => key !== loadingKey(base) && !key.startsWith(cutoverKeys(base)));
    await remove(organization, keys);
  }
  for (const organization of taken) {
    // An attempt that was killed just before its end may have registered it. It stays so: a removal could arrive only
    // after another process has put it into service.
    await remove(organization, [loadingKey(organization.base)]);
    organization.isLoading = false;
    await store.srem(unfinishedLoadsKey(prefix, lock.run), organization.id);
  }
  return taken.map(({ id }) => id).sort();
}
