import type { MigrationContext } from '../engine/context.ts';
import { normalizedIn } from '../engine/organizations.ts';
import type { RecordOf } from '../records/records.ts';
import type { OnConflict } from '../sources/scope.ts';
import { createSorter, separator } from './sorter.ts';
import { pad, type Entry, type Spool } from './spool.ts';

/** A user's change of username that others wait for, or that waits for another one's. */
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

// Of one name, the user who leaves it comes first, then whether it is denied, then those who want it.
const leaving = 'a';
const denied = 'b';
const wanted = 'c';

/**
 * Decides who gets a username that several records want: whoever has it in Redis and stays keeps it, or else the
 * first in the source gets it. Returns the renames that depend on each other, which are to be made together.
 */
export async function decideNames(
  { workspace, organizations, issues }: Pick<MigrationContext, 'workspace' | 'organizations' | 'issues'>,
  spool: Spool,
  { onConflict, usernameToPrune }: NamesChoice,
): Promise<Rename[]> {
  const sorter = createSorter(workspace);
  const note = async (id: string, name: string, side: string, seq: number, party: unknown): Promise<void> => {
    const form = normalizedIn(await organizations.find(id), name);
    await sorter.add([id, form, side, pad(seq), JSON.stringify(party)].join(separator));
  };
  for await (const entry of spool.entries()) {
    if (entry.decision !== undefined || !isWrite(entry)) continue;
    const { organizationId, username = '' } = entry.record as Partial<RecordOf['profiles']>;
    if (organizationId === undefined) continue;
    if (entry.entity === 'denylist') await note(organizationId, username, denied, entry.seq, 0);
    if (entry.entity !== 'profiles') continue;
    const party = partyOf(entry as Entry<'profiles'>);
    if (username !== '') await note(organizationId, username, wanted, entry.seq, party);
    if (entry.previous !== undefined) await note(organizationId, entry.previous, leaving, entry.seq, party);
  }

  const refused = new Map<string, 'stays' | 'nameless'>();
  const refuse = async (party: Party, detail: string): Promise<void> => {
    const isDropped = onConflict === 'drop-username';
    refused.set(userKey(party), isDropped ? 'nameless' : 'stays');
    const { organizationId, userId, username, where } = party;
    const issue = { reason: 'username-conflict', where, detail, organizationId, userId, username } as const;
    issues.add({ entity: 'profiles', ...issue });
    await spool.decide(party.seq, isDropped ? 'nameless' : 'refused');
  };
  const inRedis = ({ username, holder }: Party): string =>
    `username ${JSON.stringify(username)} is that of user ${JSON.stringify(holder)} in Redis`;

  const judge = async (
    parties: readonly Party[],
    leaver: Party | undefined,
  ): Promise<Waiting | undefined> => {
    const holder = parties.find((party) => party.holder !== undefined)?.holder;
    const [first] = parties;
    if (first === undefined) return undefined;
    const staying = parties.find(({ userId }) => userId === holder);
    const gone =
      holder === undefined || staying !== undefined || leaver?.userId === holder
        ? leaver
        : await prunedParty(first.organizationId, holder);
    const isFree = holder === undefined || gone?.userId === holder;
    const winner = staying ?? (isFree ? first : undefined);
    for (const party of parties) {
      if (party === winner) continue;
      const other = winner ?? party;
      const detail =
        winner === undefined
          ? inRedis({ ...party, holder })
          : `username ${JSON.stringify(party.username)} is also that of user ${JSON.stringify(other.userId)} at ${other.where}`;
      await refuse(party, detail);
    }
    if (winner === undefined || gone === undefined || winner.userId === gone.userId) return undefined;
    return { wanting: winner, leaving: gone };
  };
  const prunedParty = async (organizationId: string, userId: string): Promise<Party | undefined> => {
    const previous = await usernameToPrune(organizationId, userId);
    return previous === undefined
      ? undefined
      : { seq: -1, organizationId, userId, username: '', where: '', previous };
  };

  let waiting: Waiting[] = [];
  let group: { key: string; parties: Party[]; leaver: Party | undefined } = emptyGroup('');
  const settleGroup = async (): Promise<void> => {
    const found = await judge(group.parties, group.leaver);
    if (found !== undefined) waiting.push(found);
  };
  let isDenied = false;
  for await (const line of sorter.sorted()) {
    const [id = '', form = '', side, , ...json] = line.split(separator);
    if (id + separator + form !== group.key) {
      await settleGroup();
      group = emptyGroup(id + separator + form);
      isDenied = false;
    }
    const party = JSON.parse(json.join(separator)) as Party;
    if (side === denied) isDenied = true;
    else if (side === leaving) group.leaver = party;
    else group.parties.push(party);
    if (side === wanted && isDenied) reportDenied(issues, party);
  }
  await settleGroup();

  // Who is refused keeps the name, so whoever waits for that name is refused, too.
  for (let isSettled = false; !isSettled;) {
    const left: Waiting[] = [];
    for (const each of waiting) {
      if (refused.get(userKey(each.leaving)) !== 'stays') left.push(each);
      else await refuse(each.wanting, inRedis({ ...each.wanting, holder: each.leaving.userId }));
    }
    isSettled = left.length === waiting.length;
    waiting = left;
  }
  const renames = new Map<string, Rename>();
  for (const party of waiting.flatMap((each) => [each.leaving, each.wanting])) {
    const { organizationId, userId, previous = '', username } = party;
    const to = refused.has(userKey(party)) ? '' : username;
    renames.set(userKey(party), { organizationId, userId, from: previous, to });
  }
  return [...renames.values()];
}

interface Waiting {
  wanting: Party;
  leaving: Party;
}

function emptyGroup(key: string): { key: string; parties: Party[]; leaver: Party | undefined } {
  return { key, parties: [], leaver: undefined };
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
  return organizationId + separator + userId;
}

function reportDenied(
  issues: MigrationContext['issues'],
  { organizationId, userId, username, where }: Party,
): void {
  const detail = `username ${JSON.stringify(username)} is on the denylist: it is kept`;
  issues.add({
    entity: 'profiles',
    reason: 'denied-name-in-use',
    where,
    detail,
    organizationId,
    userId,
    username,
  });
}
