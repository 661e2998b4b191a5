import type { Organization } from '../../context/organizations.ts';

/** Text of the rows that one call carries, in characters: a few milliseconds of work for Redis. */
const callLength = 32 * 1024;
/** Text that waits for other rows of its organization, in characters. */
const maxWaiting = 4 * 1024 * 1024;
/** Text that Redis has not acknowledged yet, in characters. */
const maxUnanswered = 512 * 1024;

export type RowSender = ReturnType<typeof createRowSender>;

/** Collects rows, and sends those of one organization together, even if rows of many organizations alternate. */
export function createRowSender(send: (organization: Organization, rows: string) => Promise<void>) {
  const waiting = new Map<Organization, { rows: (string | number)[]; length: number }>();
  const calls = new Set<Promise<void>>();
  let [allWaiting, unanswered] = [0, 0];
  let failure: { error: unknown } | undefined;

  const sendRowsOf = (organization: Organization): void => {
    const own = waiting.get(organization);
    if (own === undefined) return;
    // What waits for the answer must not keep the rows alive: collecting garbage that old would cost more than the rest.
    const { rows, length } = own;
    waiting.delete(organization);
    allWaiting -= length;
    unanswered += length;
    const answer = send(organization, JSON.stringify(rows))
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => {
        calls.delete(answer);
        unanswered -= length;
      });
    calls.add(answer);
  };
  const settle = async (allowed: number): Promise<void> => {
    for (const answer of calls) {
      if (unanswered <= allowed) break;
      await answer;
    }
  };
  const sendAll = (): void => {
    for (const organization of waiting.keys()) sendRowsOf(organization);
  };

  return {
    add: (organization: Organization, row: readonly string[]): void => {
      let own = waiting.get(organization);
      if (own === undefined) waiting.set(organization, (own = { rows: [], length: 0 }));
      const before = own.length;
      own.rows.push(row.length);
      for (const part of row) {
        own.rows.push(part);
        own.length += part.length + 3;
      }
      allWaiting += own.length - before;
      if (own.length >= callLength) sendRowsOf(organization);
    },
    /** Resolves when there is room for more. Rejects when a call has failed. */
    room: async (): Promise<void> => {
      if (allWaiting > maxWaiting) sendAll();
      await settle(maxUnanswered);
      if (failure !== undefined) throw failure.error;
    },
    /** Sends all collected rows, and resolves when these are acknowledged. Rejects when a call has failed. */
    flush: async (): Promise<void> => {
      sendAll();
      await Promise.all(calls);
      if (failure !== undefined) throw failure.error;
    },
    /** Resolves when nothing is unanswered, whatever became of it. */
    settle: async (): Promise<void> => await settle(0),
  };
}
