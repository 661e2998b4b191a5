import type { MigrationContext } from './context.ts';
import type { Decisions } from '../analysis/decisions.ts';
import { createSorter } from '../analysis/sorter.ts';
import { normalizedIn, type Organizations } from './organizations.ts';
import type { OnConflict } from '../sources/scope.ts';
import type { Notes } from './writer.ts';

/** A username that has to become free before whoever gets it in the source can be given it. */
export interface Release {
  organizationId: string;
  userId: string;
  username: string;
}

interface Wanted {
  organizationId: string;
  seq: number;
  where: string;
  userId: string;
  username: string;
  holder: string;
}

/** Brings usernames that are taken in Redis together with those that their users leave. */
export interface Renames {
  /** For a rehearsal's writer. */
  notes: Notes;
  /** Puts away what was noted; now and then, so that it does not pile up. */
  flush: () => Promise<void>;
  /**
   * Decides on the records whose usernames other users keep. Says which usernames must be released first, and how
   * many records that helps.
   */
  settle: (
    onConflict: OnConflict,
    decisions: Decisions,
  ) => Promise<{ releases: Release[]; resolved: number }>;
}

const separator = '\u0001';

export function createRenames({ workspace, issues, organizations }: MigrationContext): Renames {
  const sorter = createSorter(workspace);
  let lines: string[] = [];
  // Of one form, the user who leaves it (a) comes before those who want it (b).
  const note = (organizationId: string, form: string, side: 'a' | 'b', payload: unknown): void => {
    lines.push([organizationId, form, side, JSON.stringify(payload)].join(separator));
  };

  const refuse = async (wanted: Wanted, onConflict: OnConflict, decisions: Decisions): Promise<void> => {
    const { organizationId, seq, where, userId, username, holder } = wanted;
    const detail = `username ${JSON.stringify(username)} is that of user ${JSON.stringify(holder)} in Redis`;
    issues.add({
      entity: 'profiles',
      reason: 'username-conflict',
      where,
      detail,
      organizationId,
      userId,
      username,
    });
    await decisions.add(seq, onConflict === 'drop-username' ? 'nameless' : 'refused');
  };

  return {
    notes: {
      onRename: ({ record }, username, form) =>
        note(record.organizationId, form, 'a', { userId: record.userId, username }),
      onTaken: (item, holder) => {
        const { organizationId, userId, username = '' } = item.record;
        const wanted = { organizationId, seq: item.seq, where: item.where(), userId, username, holder };
        note(organizationId, normalizedName(organizations, organizationId, username), 'b', wanted);
      },
    },
    flush: async () => {
      for (const line of lines.splice(0)) await sorter.add(line);
    },
    settle: async (onConflict, decisions) => {
      lines = [];
      const stay = new Set<string>();
      let waiting: { wanted: Wanted; release: Release }[] = [];
      let form = '';
      let leaving: Release | undefined;
      for await (const line of sorter.sorted()) {
        const [organizationId = '', own = '', side, ...payload] = line.split(separator);
        const given = JSON.parse(payload.join(separator)) as Wanted;
        if (organizationId + separator + own !== form) leaving = undefined;
        form = organizationId + separator + own;
        if (side === 'a') {
          leaving = { ...given, organizationId };
        } else if (leaving?.userId === given.holder) {
          waiting.push({ wanted: given, release: leaving });
        } else {
          stay.add(keyOf(given));
          await refuse(given, onConflict, decisions);
        }
      }
      // Who is refused does not leave the name, so whoever waits for it is refused, too.
      for (let found = onConflict !== 'drop-username'; found;) {
        const left: typeof waiting = [];
        for (const each of waiting) {
          if (!stay.has(keyOf(each.release))) {
            left.push(each);
            continue;
          }
          stay.add(keyOf(each.wanted));
          await refuse(each.wanted, onConflict, decisions);
        }
        found = left.length < waiting.length;
        waiting = left;
      }
      return { releases: waiting.map(({ release }) => release), resolved: waiting.length };
    },
  };
}

function keyOf({ organizationId, userId }: { organizationId: string; userId: string }): string {
  return organizationId + separator + userId;
}

function normalizedName(organizations: Organizations, id: string, username: string): string {
  const organization = organizations.find(id);
  if (organization instanceof Promise) throw new Error('an organization that Redis was asked about is known');
  return normalizedIn(organization, username);
}
