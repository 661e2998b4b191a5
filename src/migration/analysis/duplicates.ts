import type { MigrationContext } from '../engine/context.ts';
import type { Entity } from '../records/records.ts';
import { identityOf, scopeOf } from './identity.ts';
import type { Outcome } from './outcomes.ts';
import type { Seen } from './seen.ts';
import { createSorter, separator } from './sorter.ts';
import { pad, type Entry, type Spool } from './spool.ts';

interface Candidate {
  entity: Entity;
  organizationId: string;
  seq: number;
  where: string;
  outcome: Outcome;
  isRepeated: boolean;
  updatedAt: number;
  userId?: string | undefined;
  username?: string | undefined;
}

/**
 * Decides between records with one identity: the newest holds, at a tie the later one. `repeated` knows the
 * identities that came up more than once; a record that Redis has already may be missing from the spool.
 */
export async function decideDuplicates(
  context: Pick<MigrationContext, 'workspace' | 'organizations' | 'issues'>,
  spool: Spool,
  repeated: Seen,
): Promise<void> {
  if (repeated.isEmpty) return;
  const sorter = createSorter(context.workspace);
  for await (const entry of spool.entries()) {
    const { organizationId } = entry.record;
    const organization = await context.organizations.find(organizationId);
    const identity = identityOf(entry.entity, entry.record, organization);
    const scope = scopeOf(entry.entity, organizationId);
    if (!repeated.has(scope, identity)) continue;
    // References hold the one control character that lines must not.
    const key = [scope, identity.replaceAll('\n', '\u0002'), pad(entry.seq)].join(separator);
    await sorter.add(key + separator + JSON.stringify(candidateOf(entry)));
  }
  const decide = async (group: readonly Candidate[]): Promise<void> => {
    const [first, ...others] = group;
    if (first === undefined) return;
    const newest = others.reduce((best, next) => (next.updatedAt >= best.updatedAt ? next : best), first);
    // What Redis has of it is the newer record, which came first in the source.
    const isOlder = others.length === 0 && first.isRepeated && first.outcome === 'newer';
    for (const candidate of group) {
      if (candidate === newest && !isOlder) continue;
      report(context, candidate, isOlder ? undefined : newest);
      await spool.decide(candidate.seq, 'superseded');
    }
  };
  let group: Candidate[] = [];
  let key = '';
  for await (const line of sorter.sorted()) {
    const [scope = '', identity = '', , ...json] = line.split(separator);
    if (scope + separator + identity !== key) {
      await decide(group);
      group = [];
    }
    key = scope + separator + identity;
    group.push(JSON.parse(json.join(separator)) as Candidate);
  }
  await decide(group);
}

function candidateOf({ entity, seq, where, outcome, isRepeated = false, record }: Entry): Candidate {
  const {
    organizationId,
    userId,
    username,
    updatedAt = 0,
  } = record as Partial<Candidate> & {
    organizationId: string;
  };
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
