import { yieldingItems } from '../../lib/time-slices.ts';
import { profileKey } from '../../redis/keys.ts';
import type { MigrationContext } from '../context/context.ts';
import { subjectOf } from '../context/issues.ts';
import { createGroups } from '../../lib/bounded-memory/groups.ts';
import { identityOf, namespaceOf } from './identity.ts';
import type { Seen } from '../../lib/bounded-memory/seen.ts';
import { summaryOf, type Spool, type Summary } from './spool.ts';

/**
 * Decides between records with the same identity: the newest wins, or the later one in a tie. `repeated` knows the
 * identities that occurred more than once; a record that Redis already has may be missing from the spool.
 */
export async function decideDuplicates(
  context: Pick<MigrationContext, 'store' | 'workspace' | 'organizations' | 'issues'>,
  spool: Spool,
  repeated: Seen,
): Promise<void> {
  if (repeated.isEmpty) return;
  const candidates = createGroups<Summary>(context.workspace);
  for await (const entry of yieldingItems(spool.entries())) {
    const { organizationId } = entry.record;
    const organization = await context.organizations.find(organizationId);
    const identity = identityOf(entry.entity, entry.record, organization);
    const namespace = namespaceOf(entry.entity, organizationId);
    if (repeated.has(namespace, identity)) candidates.add([namespace, identity], summaryOf(entry));
  }
  for await (const group of yieldingItems(candidates.all())) {
    const newest = group.reduce((best, next) =>
      (next.updatedAt ?? 0) >= (best.updatedAt ?? 0) ? next : best,
    );
    // The record that came first in the source is the one in Redis.
    const isFirstThere = group.every(({ isRepeated }) => isRepeated);
    const isOlder = isFirstThere && (await isOlderThanInRedis(context, newest));
    for (const candidate of group) {
      if (candidate === newest && !isOlder) continue;
      const { entity, where } = candidate;
      const order = entity === 'profiles' ? 'is newer or comes later' : 'comes later';
      const detail = isOlder
        ? 'has the same identity as a newer record, which wins'
        : `has the same identity as ${newest.where}, which ${order} and wins`;
      context.issues.add({ entity, reason: 'duplicate', where, detail, ...subjectOf(candidate) });
      spool.decide(candidate.seq, 'superseded');
    }
  }
}

/** Whether the record in Redis is newer. */
async function isOlderThanInRedis(
  { store, organizations }: Pick<MigrationContext, 'store' | 'organizations'>,
  { entity, organizationId, userId = '', updatedAt = 0 }: Summary,
): Promise<boolean> {
  if (entity !== 'profiles') return false;
  const { base } = await organizations.find(organizationId);
  return Number(await store.hget(profileKey(base, userId), 't')) > updatedAt;
}
