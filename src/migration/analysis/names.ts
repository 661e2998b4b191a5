import type { MigrationContext } from '../engine/context.ts';
import { reportDenied, subjectOf } from '../engine/issues.ts';
import { normalizedIn } from '../engine/organizations.ts';
import type { OnConflict } from '../sources/scope.ts';
import { yieldingItems } from '../../lib/time-slices.ts';
import { createGroups } from './groups.ts';
import { summaryOf, type Entry, type Spool, type Summary } from './spool.ts';

/** A change of username that depends on another one, or that another one depends on. */
export interface Rename {
  organizationId: string;
  userId: string;
  /** '' for none. */
  from: string;
  /** '' for none. */
  to: string;
}

interface NamesChoice {
  onConflict: OnConflict;
  /** The username of a user who is in Redis, is no longer in the source and will be pruned; undefined for others. */
  usernameToPrune: (organizationId: string, userId: string) => Promise<string | undefined>;
}

/** A record that a username concerns. */
type Claim = Summary & { readonly kind: 'wants' | 'leaves' | 'denies' };

/** A user who has a username, or is to get it. */
type Party = Pick<Claim, 'organizationId' | 'userId' | 'username' | 'previous'>;

/** A user who gets a username, and the user who has it and gets another one. */
interface Transfer {
  to: Claim;
  from: Party;
}

/**
 * Decides who gets a username that several records want: the user who has it in Redis and keeps it, or else the
 * first in the source gets it. Returns the renames that depend on each other, which are to be made together.
 */
export async function decideNames(
  { workspace, organizations, issues }: Pick<MigrationContext, 'workspace' | 'organizations' | 'issues'>,
  spool: Spool,
  { onConflict, usernameToPrune }: NamesChoice,
): Promise<Rename[]> {
  const claims = createGroups<Claim>(workspace);
  for await (const entry of yieldingItems(spool.entries())) {
    const { entity, decision, previous } = entry;
    if (decision !== undefined || !isWrite(entry) || (entity !== 'profiles' && entity !== 'denylist'))
      continue;
    const summary = summaryOf(entry);
    const organization = await organizations.find(summary.organizationId);
    const add = (kind: Claim['kind'], name: string | undefined): void => {
      if (name === undefined) return;
      claims.add([organization.id, normalizedIn(organization, name)], { ...summary, kind });
    };
    add(entity === 'profiles' ? 'wants' : 'denies', summary.username);
    add('leaves', previous);
  }

  const refused = new Map<string, 'stays' | 'nameless'>();
  const refuse = (claim: Claim, why: string): void => {
    const isDropped = onConflict === 'drop-username';
    refused.set(userKey(claim), isDropped ? 'nameless' : 'stays');
    const detail = `username ${JSON.stringify(claim.username)} is ${why}`;
    const issue = { entity: 'profiles', reason: 'username-conflict', where: claim.where, detail } as const;
    issues.add({ ...issue, ...subjectOf(claim) });
    spool.decide(claim.seq, isDropped ? 'nameless' : 'refused');
  };
  const inRedis = (holder: string | undefined): string => `that of user ${JSON.stringify(holder)} in Redis`;

  const transfers: Transfer[] = [];
  for await (const group of yieldingItems(claims.all())) {
    const wanting = group.filter(({ kind }) => kind === 'wants');
    const [first] = wanting;
    if (first === undefined) continue;
    for (const claim of group.some(({ kind }) => kind === 'denies') ? wanting : []) {
      reportDenied(issues, claim.where, subjectOf(claim));
    }
    const holder = wanting.find((claim) => claim.holder !== undefined)?.holder;
    const staying = wanting.find(({ userId }) => userId === holder);
    let leaving: Party | undefined = group.find(({ kind }) => kind === 'leaves');
    if (holder !== undefined && staying === undefined && leaving?.userId !== holder) {
      const { organizationId } = first;
      const previous = await usernameToPrune(organizationId, holder);
      leaving =
        previous === undefined
          ? undefined
          : { organizationId, userId: holder, username: undefined, previous };
    }
    const isFree = holder === undefined || leaving?.userId === holder;
    const winner = staying ?? (isFree ? first : undefined);
    for (const claim of wanting) {
      if (claim === winner) continue;
      const detail =
        winner === undefined
          ? inRedis(holder)
          : `also that of user ${JSON.stringify(winner.userId)} at ${winner.where}`;
      refuse(claim, detail);
    }
    if (winner !== undefined && leaving !== undefined && winner.userId !== leaving.userId)
      transfers.push({ to: winner, from: leaving });
  }

  // A user who is refused keeps the old name, so the user who was to get that one is refused too.
  const left = new Set(transfers);
  const byLeaving = new Map(transfers.map((transfer) => [userKey(transfer.from), transfer]));
  for (const transfer of transfers) {
    let next: Transfer | undefined = transfer;
    while (next !== undefined && refused.get(userKey(next.from)) === 'stays' && left.delete(next)) {
      refuse(next.to, inRedis(next.from.userId));
      next = byLeaving.get(userKey(next.to));
    }
  }
  const renames = new Map<string, Rename>();
  for (const party of [...left].flatMap(({ to, from }) => [from, to])) {
    const { organizationId, userId = '', previous = '', username = '' } = party;
    const to = refused.has(userKey(party)) ? '' : username;
    renames.set(userKey(party), { organizationId, userId, from: previous, to });
  }
  return [...renames.values()];
}

/** Whether the entry would change what Redis has. */
function isWrite({ outcome }: Entry): boolean {
  return outcome === 'created' || outcome === 'updated';
}

function userKey({ organizationId, userId }: Party): string {
  return JSON.stringify([organizationId, userId]);
}
