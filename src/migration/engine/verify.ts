import { forEachConcurrently } from '../../lib/collections/for-each-concurrently.ts';
import { namesBucketKey, organizationsKey, settingsKey } from '../../redis/keys.ts';
import { findUnregistered } from '../../redis/organizations.ts';
import type { Entity, RecordOf } from '../records/records.ts';
import type { Scope } from '../sources/scope.ts';
import type { Decided } from '../analysis/spool.ts';
import { assessSource } from './assess.ts';
import { entriesToWrite } from './write/entries.ts';
import type { MigrationContext } from '../context/context.ts';
import { recheckIndexes } from './current-index.ts';
import { describeDifferences, differencesOf, type Difference } from './compare/differences.ts';
import type { Extras } from './compare/extras.ts';
import { differing, problems, subjectOf, type Reason } from '../context/issues.ts';
import { byOrganization, normalizedIn, type Organization } from '../context/organizations.ts';
import { withOrderedPool } from '../../lib/collections/ordered-pool.ts';
import { migrateReadNames } from './scripts.ts';
import { readProfiles } from './stored/read.ts';
import { aboutStored } from './stored/scan.ts';
import { putRecords } from './write/put.ts';

export type Verified = Awaited<ReturnType<typeof verify>>;

const comparedAtOnce = 200;
/** Organizations whose name indexes are read at once. */
const organizationsAtOnce = 16;

/**
 * Compares the source with Redis in both directions: every record field by field, what Redis has besides, and the name
 * index with the profiles. Reads the source once and Redis once. Records that the run has left out by the scope's rule,
 * because they have problems, are not differences.
 */
export async function verify(scope: Scope, context: MigrationContext, run: string) {
  const { issues } = context;
  context.progress.begin(2);
  const assessment = await assessSource(scope, context, run, { isVerifying: true });
  context.signal.throwIfAborted();
  let comparisons = 0;
  for await (const batch of entriesToWrite(context, assessment, comparedAtOnce))
    comparisons += await reportEntries(context, batch);

  context.progress.next();
  const { reading, extras } = assessment;
  await reportExtras(context, extras);
  await reportUnregistered(context, extras.organizations());
  let indexed = 0;
  if (scope.entities.includes('profiles')) {
    await forEachConcurrently(extras.organizations(), organizationsAtOnce, async (organization) => {
      const found = await verifyIndex(context, organization);
      indexed += found;
    });
    // Its figures may be those of a Redis that was lost meanwhile.
    context.signal.throwIfAborted();
  }
  await recheckIndexes(context, extras.organizations());

  const compared = new Map<Entity, number>();
  for (const [entity, rows] of reading.read) {
    const { duplicate, refused } = context.tallies.of(entity);
    compared.set(entity, rows - issues.count('invalid', entity) - duplicate - refused);
  }
  return {
    /** Records of the source compared with Redis, by entity. */
    compared: compared as ReadonlyMap<Entity, number>,
    /** Records of Redis looked for in the source, by entity. */
    stored: extras.stored,
    /** Entries of the name index compared with the profiles. */
    indexed,
    read: reading.read,
    /** Username conflicts that a prune would resolve. */
    freedByPrune: assessment.freedByPrune,
    /** How many records are missing, different or extra. */
    differences: issues.count(scope.onConflict === 'abort' ? [...differing, ...problems] : differing),
    /** How many of these are organizations that differ only in how they compare names, which no apply changes. */
    comparisons,
  };
}

/** Reports entries of one entity that do not agree with Redis; returns how many differ in the comparison of names alone. */
async function reportEntries(
  context: MigrationContext,
  entries: readonly [Decided, ...Decided[]],
): Promise<number> {
  const [first] = entries;
  const differences = await differencesOf(context, first.entity, entries);
  const results = await putRecords(context, first.entity, entries);
  let comparisons = 0;
  const keptHere: Identity[] = [];
  for (const [position, { entity, record, where }] of entries.entries()) {
    const { outcome = 'unchanged', holder } = results[position] ?? {};
    if (entity === 'profiles' && (outcome === 'kept' || outcome === 'newer'))
      keptHere.push(record as RecordOf['profiles']);
    const found = differences[position] ?? [];
    const finding = judge(record, outcome, found, holder);
    if (finding === undefined) continue;
    context.issues.add({ entity, where, ...finding, ...subjectOf(record) });
    const isComparison = found.every(({ field }) => field === 'usernameComparison');
    if (finding.reason === 'different' && isComparison && found.length > 0) comparisons += 1;
  }
  await reportUnindexed(context, keptHere);
  return comparisons;
}

function judge(
  record: RecordOf[Entity],
  outcome: Decided['outcome'],
  differences: readonly Difference[],
  holder: string | undefined,
): { reason: Reason; detail: string } | undefined {
  if (holder !== undefined) {
    const { username } = record as RecordOf['profiles'];
    const detail = `username ${JSON.stringify(username)} is that of user ${JSON.stringify(holder)}`;
    return { reason: 'different', detail };
  }
  const fields = describeDifferences(differences);
  switch (outcome) {
    case 'created':
      return { reason: 'missing', detail: 'is not in Redis' };
    case 'updated':
      return { reason: differences[0]?.field === 'name index' ? 'index' : 'different', detail: fields };
    case 'kept':
      return { reason: 'changed-here', detail: `was changed here${fields && `: ${fields}`}` };
    case 'newer':
      return { reason: 'newer-in-redis', detail: `is newer in Redis, though not changed here: ${fields}` };
    default:
      return undefined;
  }
}

/** Reports what Redis has besides the source. */
async function reportExtras(context: MigrationContext, extras: Extras): Promise<void> {
  const { issues } = context;
  const keptHere: Identity[] = [];
  for await (const extra of extras.find()) {
    const { entity, organization, key, isLocal } = extra;
    const mayBeInvalid = issues.count('invalid', entity) > 0;
    const absent = `is not in the source${mayBeInvalid ? ', unless it is one of its invalid rows' : ''}`;
    issues.add({
      ...aboutStored(extra),
      // A source need not describe the organizations of its records.
      reason: isLocal || entity === 'organizations' ? 'changed-here' : 'extra',
      detail: isLocal ? `was changed here and ${absent}` : absent,
    });
    if (isLocal && entity === 'profiles') keptHere.push({ organizationId: organization.id, userId: key });
    if (keptHere.length >= comparedAtOnce) await reportUnindexed(context, keptHere.splice(0));
  }
  await reportUnindexed(context, keptHere);
}

/** Reports organizations that exist and are not in the registry, so that an export of everything leaves them out. */
async function reportUnregistered(
  { store, prefix, issues }: MigrationContext,
  organizations: readonly Organization[],
): Promise<void> {
  const where = organizationsKey(prefix);
  const ids = organizations.map(({ id }) => id);
  for (const organizationId of await findUnregistered(store, prefix, ids)) {
    const detail = 'is not in the registry of organizations: run profile-bridge admin fsck --repair';
    issues.add({ entity: 'organizations', reason: 'index', where, detail, organizationId });
  }
}

type Identity = Pick<RecordOf['profiles'], 'organizationId' | 'userId'>;

/** Reports profiles, such as Redis alone has, whose usernames lead to somebody else in the name index, or nowhere. */
async function reportUnindexed(context: MigrationContext, users: readonly Identity[]): Promise<void> {
  const items = users.map((record) => ({ record }));
  await byOrganization(items, context.organizations, async (organization, records) => {
    const nobody = records.map(({ userId }) => [userId, ''] as const);
    const profiles = await readProfiles(context, organization, nobody);
    const nameOf = (at: number, among: typeof profiles): string =>
      normalizedIn(organization, among[at]?.stored.get('u'));
    const rows = records.map(({ userId }, at) => [userId, nameOf(at, profiles)] as const);
    const found = await readProfiles(context, organization, rows);
    for (const [at, [userId, name]] of rows.entries()) {
      const holder = found[at]?.holder;
      // What has changed a username since has changed the index with it.
      if (name === '' || holder === userId || nameOf(at, found) !== name) continue;
      const detail = describeDifferences([{ field: 'name index', redis: holder, source: userId }]);
      const profile = { entity: 'profiles', organization, key: userId } as const;
      context.issues.add({ ...aboutStored(profile), reason: 'index', detail });
    }
    return [];
  });
}

/** Buckets of the name index read at once. */
const bucketsAtOnce = 64;

/** Reports entries of an organization's name index that lead to nobody of that name; returns how many there are in all. */
async function verifyIndex(context: MigrationContext, organization: Organization): Promise<number> {
  const { store, signal } = context;
  const { base, index, namesFound } = organization;
  const buckets = Number((await store.hget(settingsKey(base), `n${index}`)) ?? 1);
  let entries = 0;
  await withOrderedPool(bucketsAtOnce, async (pool) => {
    for (let bucket = 0; bucket < buckets; bucket += 1) {
      signal.throwIfAborted();
      await pool.add(store.hlen(namesBucketKey(base, index, String(bucket))), (found) => {
        entries += found;
      });
    }
    await pool.drain();
    // An index with no more entries than names that were found in it has no others.
    if (entries === namesFound) return;
    for (let bucket = 0; bucket < buckets; bucket += 1) {
      signal.throwIfAborted();
      await pool.add(verifyBucket(context, organization, String(bucket)));
    }
  });
  return entries;
}

/** Every entry of the name index must lead to a user of that very name. */
async function verifyBucket(
  { store, issues }: MigrationContext,
  organization: Organization,
  bucket: string,
): Promise<void> {
  const others = await migrateReadNames(store, organization.base, organization.index, bucket);
  const organizationId = organization.id;
  for (const [normalized, userId, name] of others) {
    if (name !== null && normalizedIn(organization, name) === normalized) continue;
    const detail = `leads from ${JSON.stringify(normalized)} to user ${JSON.stringify(userId)}, whose username is ${name === null ? 'absent' : JSON.stringify(name)}: run profile-bridge admin fsck --repair`;
    const where = `name index of organization ${JSON.stringify(organizationId)}`;
    issues.add({ entity: 'profiles', reason: 'index', where, detail, organizationId, userId });
  }
}
