import { decideDuplicates } from '../analysis/duplicates.ts';
import { decideNames } from '../analysis/names.ts';
import { createSpool, type Spool } from '../analysis/spool.ts';
import { namespaceOf } from '../analysis/identity.ts';
import { settleAll } from '../../lib/collections/settle-all.ts';
import { profileKey } from '../../redis/keys.ts';
import type { Entity } from '../records/records.ts';
import type { Scope } from '../sources/scope.ts';
import { organizationSettings } from '../records/stored.ts';
import type { MigrationContext } from '../context/context.ts';
import { problems, subjectOf } from '../context/issues.ts';
import { isLoaded, type Load } from './load/load.ts';
import { placeOf, readSource, type Item, type Reading } from './read/reading.ts';
import { createExtras } from './compare/extras.ts';
import { removeRecords } from './stored/remove.ts';
import { dryRun } from './scripts.ts';
import { planPrune, type PrunePlan } from './write/prune.ts';
import { putRecords } from './write/put.ts';

/** The source as it was read once, and the decisions on its records. */
export type Assessment = Awaited<ReturnType<typeof assessSource>>;

export interface PruneChoice {
  prune?: boolean | undefined;
  pruneAtMost?: number | undefined;
}

interface AssessChoice extends PruneChoice {
  /** Loads the records of organizations that Redis does not know yet; without it, they are compared like all others. */
  load?: Load | undefined;
  /** Whether to include records that differ but stay as they are in Redis. */
  isVerifying?: boolean | undefined;
}

/**
 * Reads the source once, compares every record with Redis by the very scripts that would write it, and decides what
 * would become of it, and what a prune would remove. Writes nothing to Redis, unless records are to be loaded; memory
 * stays flat, for what differs goes to disk. Ends early on `signal`.
 */
export async function assessSource(
  scope: Scope,
  context: MigrationContext,
  run: string,
  { load, isVerifying = false, prune: isPruning = false, pruneAtMost }: AssessChoice,
) {
  const { issues, progress, signal } = context;
  const spool = createSpool(context.workspace);
  const extras = createExtras(context, scope, run);
  const compare = async (entity: Entity, items: readonly Item[]): Promise<void> => {
    if (items.length === 0) return;
    if (isVerifying || isPruning)
      for (const { organization, record } of items) extras.note(entity, organization, record);
    const writable =
      entity === 'organizations' ? items.map((item) => withComparisonInForce(context, item)) : items;
    await compareItems(context, entity, isVerifying ? items : writable, spool);
  };
  const take = (entity: Entity, items: readonly Item[]): Promise<unknown> => {
    const isToLoad = ({ organization }: Item): boolean => isLoaded(entity, organization);
    const toLoad = items.filter(isToLoad);
    const others = items.filter((item) => !isToLoad(item));
    return settleAll([load?.take(entity, toLoad, spool), compare(entity, others)]);
  };
  progress.next();
  const phase = isVerifying ? 'verifying' : 'reading';
  const [onOrganization, onAccepted] = [load?.begin, load?.accepted];
  const reading = await readSource(scope, context, { phase, onOrganization, take, onAccepted });
  const isFull = scope.since === undefined;
  let names: Awaited<ReturnType<typeof decideNames>> = { renames: [], freedByPrune: 0 };
  let pruning: PrunePlan | undefined;
  if (!signal.aborted) {
    if (load !== undefined) progress.next();
    await load?.index(reading.repeated, spool);
    await decideDuplicates(context, spool, reading.repeated);
    names = await decideNames(context, spool, {
      onConflict: scope.onConflict,
      isFull,
      isPruning,
      usernameToPrune: async (...user) => await usernameToPrune(context, reading, ...user),
    });
  }
  if (isPruning && !signal.aborted) {
    progress.next();
    pruning = await planPrune(context, reading, extras, pruneAtMost);
  }
  return {
    reading,
    /** The records that may change something, or that do not agree with Redis, with the decisions on them. */
    spool,
    ...names,
    /** Whether all rows were read, rather than those that have changed. */
    isFull,
    /** Records that stop an apply, unless --on-conflict says otherwise. */
    problems: issues.count(problems),
    /** Finds what Redis has besides, for a verify. */
    extras,
    /** What a prune is to remove. */
    pruning,
    isVerifying,
  };
}

/** Compares records with Redis: those that differ, or have competitors, go to the spool, all others to the tallies. */
async function compareItems(
  context: MigrationContext,
  entity: Entity,
  items: readonly Item[],
  spool: Spool,
): Promise<void> {
  const { issues, tallies } = context;
  const results = await putRecords(dryRun(context), entity, items);
  for (const [position, item] of items.entries()) {
    const { seq, record, isRepeated } = item;
    const result = results[position] ?? { outcome: 'created' };
    const { outcome } = result;
    if (entity === 'denylist' && result.isDenied === true) {
      const subject = subjectOf(record);
      const detail = `${JSON.stringify(subject.username)} is denied, and a user's name: both are kept`;
      issues.add({ entity, reason: 'denied-name-in-use', where: placeOf(item), detail, ...subject });
    }
    if (outcome !== 'unchanged' || isRepeated) {
      spool.add({ seq, entity, where: placeOf(item), isRepeated, record, ...result });
      continue;
    }
    tallies.add(entity, record.organizationId, outcome);
    if (entity === 'profiles' && subjectOf(record).username !== undefined) item.organization.namesFound += 1;
  }
}

/** The username of a user in Redis who was not seen and whom a prune would remove; undefined for any other user. */
async function usernameToPrune(
  context: MigrationContext,
  { seen }: Reading,
  organizationId: string,
  userId: string,
): Promise<string | undefined> {
  const { store, organizations, issues } = context;
  if (issues.count('invalid', 'profiles') > 0) return undefined;
  if (seen.has(namespaceOf('profiles', organizationId), userId)) return undefined;
  const organization = await organizations.find(organizationId);
  const username = await store.hget(profileKey(organization.base, userId), 'u');
  const user = { entity: 'profiles', organization, keys: [userId] } as const;
  const [isRemovable] = await removeRecords(dryRun(context), user);
  return isRemovable === true ? (username ?? undefined) : undefined;
}

/** An organization as it can be written: one that is in Redis keeps its comparison of names, which is reported. */
function withComparisonInForce({ issues }: MigrationContext, item: Item): Item {
  const { exists, id, settings } = item.organization;
  const { comparison: usernameComparison } = settings;
  if (!exists || organizationSettings(item.record).comparison === usernameComparison) return item;
  const detail = `organization ${JSON.stringify(id)} keeps its username comparison: only profile-bridge admin org set changes it`;
  const where = placeOf(item);
  issues.add({ entity: 'organizations', reason: 'comparison-kept', where, detail, organizationId: id });
  return { ...item, record: { ...item.record, usernameComparison } };
}
