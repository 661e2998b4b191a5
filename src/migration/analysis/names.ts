import type { MigrationContext } from '../context/context.ts';
import { reportDenied, subjectOf } from '../context/issues.ts';
import { normalizedIn } from '../context/organizations.ts';
import type { OnConflict } from '../sources/scope.ts';
import { yieldingItems } from '../../lib/time-slices.ts';
import { createGroups } from '../../lib/bounded-memory/groups.ts';
import { isChange } from '../context/outcomes.ts';
import { summaryOf, type Spool, type Summary } from './spool.ts';

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
  /** Whether all of the source was read, so that a user who was not seen is not in it. */
  isFull: boolean;
  /** Whether users who are no longer in the source will be pruned. */
  isPruning: boolean;
  /** The username of a user who is in Redis, was not seen in the source and can be pruned; undefined for others. */
  usernameToPrune: (organizationId: string, userId: string) => Promise<string | undefined>;
}

/** A record that wants a username, gives it up, or denies it. */
type Claim = Summary & { readonly kind: 'wants' | 'leaves' | 'denies' };

/** A user who has a username, or is to get it. */
type Party = Pick<Claim, 'organizationId' | 'userId' | 'username' | 'previous'>;

/** A username that changes hands: the user who has it gets another one. */
interface Transfer {
  to: Claim;
  from: Party;
}

type Context = Pick<MigrationContext, 'workspace' | 'organizations' | 'issues'>;

/**
 * Decides who gets a username that several records want: the user who has it in Redis and keeps it, or else the
 * first in the source gets it.
 */
export async function decideNames(context: Context, spool: Spool, choice: NamesChoice) {
  const { issues } = context;
  const isDropped = choice.onConflict === 'drop-username';
  const refused = new Set<string>();
  const refuse = (claim: Claim, why: string): void => {
    refused.add(userKey(claim));
    const detail = `username ${JSON.stringify(claim.username)} is ${why}`;
    const { where } = claim;
    issues.add({ entity: 'profiles', reason: 'username-conflict', where, detail, ...subjectOf(claim) });
    spool.decide(claim.seq, isDropped ? 'nameless' : 'refused');
  };
  const inRedis = (holder: string | undefined): string => `that of user ${JSON.stringify(holder)} in Redis`;

  /** By the user who has the name. */
  const transfers = new Map<string, Transfer>();
  let freedByPrune = 0;
  const claims = await claimsOf(context, spool);
  for await (const group of yieldingItems(claims.all())) {
    const wanting = group.filter(({ kind }) => kind === 'wants');
    const { holder, isHolderGone, leaving, winner } = await award(group, wanting, choice);
    if (winner !== undefined && group.some(({ kind }) => kind === 'denies'))
      reportDenied(issues, winner.where, subjectOf(winner));
    if (isHolderGone && winner === undefined) freedByPrune += 1;
    const reason = (): string => {
      if (winner !== undefined)
        return `also that of user ${JSON.stringify(winner.userId)} at ${winner.where}`;
      const isGone = isHolderGone && choice.isFull;
      return `${inRedis(holder)}${isGone ? ', who is not in the source: --prune removes them' : ''}`;
    };
    for (const claim of wanting) if (claim !== winner) refuse(claim, reason());
    if (winner !== undefined && leaving !== undefined && winner.userId !== leaving.userId)
      transfers.set(userKey(leaving), { to: winner, from: leaving });
  }

  // A user who is left out keeps the old name, so the user who was to get that one is left out, too. Who is left out
  // here joins the set, and has a turn as well.
  for (const user of isDropped ? [] : refused) {
    const transfer = transfers.get(user);
    if (transfer === undefined) continue;
    transfers.delete(user);
    refuse(transfer.to, inRedis(transfer.from.userId));
  }
  return {
    /** Renames that depend on each other, which are to be made together. */
    renames: renamesOf([...transfers.values()], refused),
    /** Names that were refused to everybody, and that a prune may make free: where the source was read whole, it does. */
    freedByPrune,
  };
}

/** One rename for each user of these transfers; a refused one gets no name. */
function renamesOf(transfers: readonly Transfer[], refused: ReadonlySet<string>): Rename[] {
  const renames = new Map<string, Rename>();
  for (const party of transfers.flatMap(({ to, from }) => [from, to])) {
    const { organizationId, userId = '', previous = '', username = '' } = party;
    const to = refused.has(userKey(party)) ? '' : username;
    renames.set(userKey(party), { organizationId, userId, from: previous, to });
  }
  return [...renames.values()];
}

/** The records that would be written, by the usernames that each concerns. */
async function claimsOf({ workspace, organizations }: Context, spool: Spool) {
  const claims = createGroups<Claim>(workspace);
  for await (const entry of yieldingItems(spool.entries())) {
    const { entity, decision, previous } = entry;
    if (
      decision !== undefined ||
      !isChange(entry.outcome) ||
      (entity !== 'profiles' && entity !== 'denylist')
    )
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
  return claims;
}

/** Who gets a username, who has it in Redis, whether that user seems gone from the source, and who gives it up. */
async function award(
  group: readonly Claim[],
  wanting: readonly Claim[],
  { isPruning, usernameToPrune }: NamesChoice,
) {
  const held = wanting.find((claim) => claim.holder !== undefined);
  const holder = held?.holder;
  const staying = wanting.find(({ userId }) => userId === holder);
  let leaving: Party | undefined = group.find(({ kind }) => kind === 'leaves');
  let isHolderGone = false;
  if (held?.holder !== undefined && staying === undefined && leaving?.userId !== holder) {
    const { organizationId, holder: userId } = held;
    const previous = await usernameToPrune(organizationId, userId);
    isHolderGone = previous !== undefined;
    leaving =
      isHolderGone && isPruning ? { organizationId, userId, username: undefined, previous } : undefined;
  }
  const isFree = holder === undefined || leaving?.userId === holder;
  return { holder, isHolderGone, leaving, winner: staying ?? (isFree ? wanting[0] : undefined) };
}

function userKey({ organizationId, userId }: Party): string {
  return JSON.stringify([organizationId, userId]);
}
