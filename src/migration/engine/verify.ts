import { namesBucketKey, profileKey } from '../../redis/keys.ts';
import { scanPairs } from '../../redis/scan.ts';
import { compare, type Comparison } from './compare.ts';
import type { Item } from '../sources/chunks.ts';
import type { MigrationContext } from './context.ts';
import { emptySearch, findExtras, isWrittenHere, placeOf, storedKeys } from './extras.ts';
import type { Issue, Reason } from './issues.ts';
import { normalizedIn, type Organization } from './organizations.ts';
import { applyDecisions } from './dry-run.ts';
import type { Entity } from '../records/records.ts';
import { chunksOf, type Scope } from '../sources/scope.ts';
import { surveySource } from '../analysis/survey.ts';
import { createOrderedPool } from './ordered-pool.ts';

export interface Verified {
  /** Records of the source compared with Redis, by entity. */
  compared: ReadonlyMap<Entity, number>;
  /** Records of Redis looked for in the source, by entity. */
  stored: ReadonlyMap<Entity, number>;
  /** Entries of the name index looked up in profiles. */
  indexed: number;
  read: number;
  /** What is missing, different or extra. */
  differences: number;
}

const failures: readonly Reason[] = ['missing', 'different', 'extra', 'index'];

/**
 * Compares the source with Redis in both directions: every record field by field, what Redis has besides, and the
 * name index with the profiles. `hasAccepted`: the run has left out what the survey refuses, so that is no
 * difference. `past`: organizations that the run knew and the source may no longer name.
 */
export async function verify(
  scope: Scope,
  context: MigrationContext,
  { hasAccepted, past }: { hasAccepted: boolean; past: readonly string[] },
): Promise<Verified> {
  const { issues, progress, signal } = context;
  const survey = await surveySource(scope, context);
  const compared = new Map<Entity, number>();
  for (const entity of scope.entities) {
    const decisions = survey.decisions[entity].reader();
    let count = 0;
    const window = createOrderedPool<Map<Item, Comparison>>(context.concurrency, (found) => {
      for (const [item, comparison] of found) report(context, entity, item, comparison, hasAccepted);
      count += found.size;
    });
    for await (const chunk of chunksOf(scope, entity)) {
      signal.throwIfAborted();
      progress.advance(`verifying ${entity}`, chunk.read, chunk.progress);
      await window.add(compare(context, entity, await applyDecisions(chunk, decisions)));
    }
    await window.drain();
    compared.set(entity, count);
  }

  const among = await organizationsOf(context, past, scope.organizationId);
  const searched = emptySearch();
  for await (const extra of findExtras(scope, context, among, searched)) {
    const isOurs = await isWrittenHere(context, extra);
    const where = placeOf(extra);
    const organizationId = extra.organization.id;
    const absent = `is not in the source${searched.unreadable.has(extra.entity) ? ', as far as its rows are records' : ''}`;
    const detail = isOurs ? `was written here and ${absent}` : absent;
    issues.add({
      entity: extra.entity,
      reason: isOurs ? 'changed-here' : 'extra',
      where,
      detail,
      organizationId,
    });
  }
  await verifyOrganizations(scope, context, among);
  const indexed = scope.entities.includes('profiles') ? await verifyIndex(context, among) : 0;

  let read = 0;
  for (const count of survey.read.values()) read += count;
  const unaccepted = hasAccepted ? 0 : issues.count('invalid') + issues.count('username-conflict');
  const differences = failures.reduce((sum, reason) => sum + issues.count(reason), unaccepted);
  return { compared, stored: searched.stored, indexed, read, differences };
}

function report(
  { issues }: MigrationContext,
  entity: Entity,
  item: Item,
  comparison: Comparison,
  hasAccepted: boolean,
): void {
  if (comparison.kind === 'equal') return;
  const { organizationId, userId, username } = item.record as Partial<Issue> & { organizationId: string };
  const refused: Reason = hasAccepted ? 'refused' : 'different';
  issues.add({
    entity,
    reason: comparison.kind === 'taken' ? refused : comparison.kind,
    where: item.where(),
    detail: comparison.kind === 'missing' ? 'is not in Redis' : comparison.detail,
    organizationId,
    ...(userId !== undefined && { userId }),
    ...(username !== undefined && { username }),
  });
}

/** The organizations a search for extras is about: those of the source, and those the run has brought in before. */
export async function organizationsOf(
  { organizations }: MigrationContext,
  past: readonly string[],
  only: string | undefined,
): Promise<Map<string, Organization>> {
  if (only === undefined) for (const id of past) await organizations.find(id);
  const all = organizations.all().filter(({ id, exists }) => exists && (only === undefined || id === only));
  return new Map(all.map((organization) => [organization.id, organization]));
}

/** Organizations the source no longer describes. */
async function verifyOrganizations(
  scope: Scope,
  context: MigrationContext,
  among: ReadonlyMap<string, Organization>,
): Promise<void> {
  if (!scope.entities.includes('organizations')) return;
  const described = new Set<string>();
  for await (const chunk of chunksOf(scope, 'organizations')) {
    for (const { record } of chunk.items) described.add(record.organizationId);
  }
  for (const organization of among.values()) {
    if (described.has(organization.id)) continue;
    const extra = { entity: 'organizations', organization, key: '' } as const;
    const isOurs = await isWrittenHere(context, extra);
    context.issues.add({
      entity: 'organizations',
      reason: 'changed-here',
      where: placeOf(extra),
      detail: isOurs ? 'was written here and is not in the source' : 'is not described in the source',
      organizationId: organization.id,
    });
  }
}

/** Buckets of the name index looked at at once: each is small, and waits for Redis twice. */
const bucketsAtOnce = 64;

/** Every entry of the name index must lead to a user of that very name. */
async function verifyIndex(
  context: MigrationContext,
  among: ReadonlyMap<string, Organization>,
): Promise<number> {
  let count = 0;
  const window = createOrderedPool<number>(bucketsAtOnce, (entries) => {
    count += entries;
    context.progress.advance('verifying the name index', entries, 0);
  });
  for await (const { organization, rest } of storedKeys(context, among, 'n')) {
    const [index, bucket] = rest.split(':');
    if (index !== organization.index || bucket === undefined) continue;
    await window.add(verifyBucket(context, organization, bucket));
  }
  await window.drain();
  return count;
}

/** Gives how many entries the bucket has. */
async function verifyBucket(
  { store, issues }: MigrationContext,
  organization: Organization,
  bucket: string,
): Promise<number> {
  let count = 0;
  const key = namesBucketKey(organization.base, organization.index, bucket);
  for await (const entries of scanPairs(store, key)) {
    const names = await Promise.all(
      entries.map(([, user]) => store.hget(profileKey(organization.base, user), 'u')),
    );
    for (const [position, [form, user]] of entries.entries()) {
      const name = names[position] ?? null;
      if (name !== null && normalizedIn(organization, name) === form) continue;
      const detail = `leads from ${JSON.stringify(form)} to user ${JSON.stringify(user)}, whose username is ${name === null ? 'absent' : JSON.stringify(name)}: run profile-bridge admin fsck --repair`;
      issues.add({
        entity: 'profiles',
        reason: 'index',
        where: key,
        detail,
        organizationId: organization.id,
      });
    }
    count += entries.length;
  }
  return count;
}
