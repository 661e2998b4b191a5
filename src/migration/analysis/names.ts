import { normalizedName } from '../../domain/usernames.ts';
import type { MigrationContext } from '../engine/context.ts';
import type { OnConflict } from '../sources/scope.ts';
import { createGroups } from './groups.ts';
import type { Entry, Spool } from './spool.ts';

/** A change of username that depends on another one, or that another one depends on. */
export interface Rename {
  organizationId: string;
  userId: string;
  /** '' for none. */
  from: string;
  /** '' for none. */
  to: string;
}

interface Party {
  seq: number;
  organizationId: string;
  userId: string;
  /** The name wanted; '' for none. */
  username: string;
  where: string;
  holder?: string | undefined;
  previous?: string | undefined;
}

interface NamesChoice {
  onConflict: OnConflict;
  /** The username of a user who is in Redis, is no longer in the source and will be pruned; undefined for others. */
  usernameToPrune: (organizationId: string, userId: string) => Promise<string | undefined>;
}

/** How a record concerns a username. */
interface Claim {
  kind: 'wants' | 'leaves' | 'denies';
  party: Party;
}

/** A user who gets a username, and the user who has it and gets another one. */
interface Transfer {
  to: Party;
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
  for (const entry of spool.entries()) {
    const { seq, entity, decision, previous } = entry;
    if (decision !== undefined || !isWrite(entry) || (entity !== 'profiles' && entity !== 'denylist'))
      continue;
    const party = partyOf(entry as Entry<'profiles'>);
    const organization = await organizations.find(party.organizationId);
    const add = (kind: Claim['kind'], name: string): void =>
      claims.add([organization.id, normalizedName(name, organization.settings.comparison)], seq, {
        kind,
        party,
      });
    if (party.username !== '') add(entity === 'profiles' ? 'wants' : 'denies', party.username);
    if (previous !== undefined) add('leaves', previous);
  }

  const refused = new Map<string, 'stays' | 'nameless'>();
  const refuse = (party: Party, detail: string): void => {
    const isDropped = onConflict === 'drop-username';
    refused.set(userKey(party), isDropped ? 'nameless' : 'stays');
    const { organizationId, userId, username, where } = party;
    const issue = { reason: 'username-conflict', where, detail, organizationId, userId, username } as const;
    issues.add({ entity: 'profiles', ...issue });
    spool.decide(party.seq, isDropped ? 'nameless' : 'refused');
  };
  const inRedis = ({ username, holder }: Party): string =>
    `username ${JSON.stringify(username)} is that of user ${JSON.stringify(holder)} in Redis`;

  const prunedParty = async (organizationId: string, userId: string): Promise<Party | undefined> => {
    const previous = await usernameToPrune(organizationId, userId);
    return previous === undefined
      ? undefined
      : { seq: -1, organizationId, userId, username: '', where: '', previous };
  };
  let transfers: Transfer[] = [];
  const decide = async (wanting: readonly Party[], leaving: Party | undefined): Promise<void> => {
    const [first] = wanting;
    if (first === undefined) return;
    const holder = wanting.find((party) => party.holder !== undefined)?.holder;
    const staying = wanting.find(({ userId }) => userId === holder);
    const gone =
      holder === undefined || staying !== undefined || leaving?.userId === holder
        ? leaving
        : await prunedParty(first.organizationId, holder);
    const isFree = holder === undefined || gone?.userId === holder;
    const winner = staying ?? (isFree ? first : undefined);
    for (const party of wanting) {
      if (party === winner) continue;
      const detail =
        winner === undefined
          ? inRedis({ ...party, holder })
          : `username ${JSON.stringify(party.username)} is also that of user ${JSON.stringify(winner.userId)} at ${winner.where}`;
      refuse(party, detail);
    }
    if (winner !== undefined && gone !== undefined && winner.userId !== gone.userId)
      transfers.push({ to: winner, from: gone });
  };

  for (const group of claims.all()) {
    const wanting = group.filter(({ kind }) => kind === 'wants').map(({ party }) => party);
    if (group.some(({ kind }) => kind === 'denies')) for (const party of wanting) reportDenied(issues, party);
    await decide(wanting, group.find(({ kind }) => kind === 'leaves')?.party);
  }

  // A user who is refused keeps the old name, so the user who was to get that one is refused too.
  for (let isSettled = false; !isSettled;) {
    const left: Transfer[] = [];
    for (const transfer of transfers) {
      const { to, from } = transfer;
      if (refused.get(userKey(from)) !== 'stays') left.push(transfer);
      else refuse(to, inRedis({ ...to, holder: from.userId }));
    }
    isSettled = left.length === transfers.length;
    transfers = left;
  }
  const renames = new Map<string, Rename>();
  for (const party of transfers.flatMap(({ to, from }) => [from, to])) {
    const { organizationId, userId, previous = '', username } = party;
    const to = refused.has(userKey(party)) ? '' : username;
    renames.set(userKey(party), { organizationId, userId, from: previous, to });
  }
  return [...renames.values()];
}

/** Whether the entry would change what Redis has. */
function isWrite({ outcome }: Entry): boolean {
  return outcome === 'created' || outcome === 'updated' || outcome === 'taken';
}

function partyOf({ seq, where, holder, previous, record }: Entry<'profiles'>): Party {
  const { organizationId, userId, username = '' } = record;
  return { seq, organizationId, userId, username, where, holder, previous };
}

function userKey({ organizationId, userId }: { organizationId: string; userId: string }): string {
  return JSON.stringify([organizationId, userId]);
}

function reportDenied(
  issues: MigrationContext['issues'],
  { organizationId, userId, username, where }: Party,
): void {
  const detail = `username ${JSON.stringify(username)} is on the denylist: it is kept`;
  const issue = { reason: 'denied-name-in-use', where, detail, organizationId, userId, username } as const;
  issues.add({ entity: 'profiles', ...issue });
}
