import type { MigrationContext } from '../engine/context.ts';
import type { RecordOf } from '../records/records.ts';
import { createGroups } from './groups.ts';
import { identityOf, namespaceOf } from './identity.ts';
import type { Seen } from './seen.ts';
import type { Entry, Spool } from './spool.ts';

type Candidate = Pick<Entry, 'entity' | 'seq' | 'where' | 'outcome' | 'isRepeated'> & {
  organizationId: string;
  userId: string;
  username: string | undefined;
  updatedAt: number;
};

/**
 * Decides between records with the same identity: the newest wins, or the later one in a tie. `repeated` knows the
 * identities that occurred more than once; a record that Redis already has may be missing from the spool.
 */
export async function decideDuplicates(
  context: Pick<MigrationContext, 'workspace' | 'organizations' | 'issues'>,
  spool: Spool,
  repeated: Seen,
): Promise<void> {
  if (repeated.isEmpty) return;
  const candidates = createGroups<Candidate>(context.workspace);
  for (const entry of spool.entries()) {
    const { organizationId } = entry.record;
    const organization = await context.organizations.find(organizationId);
    const identity = identityOf(entry.entity, entry.record, organization);
    const namespace = namespaceOf(entry.entity, organizationId);
    if (repeated.has(namespace, identity))
      candidates.add([namespace, identity], entry.seq, candidateOf(entry));
  }
  for (const group of candidates.all()) {
    const newest = group.reduce((best, next) => (next.updatedAt >= best.updatedAt ? next : best));
    // Redis has the newer record, which came first in the source.
    const isOlder = group.length === 1 && newest.isRepeated === true && newest.outcome === 'newer';
    for (const candidate of group) {
      if (candidate === newest && !isOlder) continue;
      report(context, candidate, isOlder ? undefined : newest);
      spool.decide(candidate.seq, 'superseded');
    }
  }
}

function candidateOf({ entity, seq, where, outcome, isRepeated, record }: Entry): Candidate {
  const { organizationId, userId, username, updatedAt = 0 } = record as RecordOf['profiles'];
  return { entity, organizationId, seq, where, outcome, isRepeated, updatedAt, userId, username };
}

function report(
  { issues }: Pick<MigrationContext, 'issues'>,
  superseded: Candidate,
  holds?: Candidate,
): void {
  const { entity, where, organizationId, userId, username } = superseded;
  const order = entity === 'profiles' ? 'is newer or comes later' : 'comes later';
  const detail =
    holds === undefined
      ? 'has the same identity as a newer record, which holds'
      : `has the same identity as ${holds.where}, which ${order} and holds`;
  issues.add({ entity, reason: 'duplicate', where, detail, organizationId, userId, username });
}
