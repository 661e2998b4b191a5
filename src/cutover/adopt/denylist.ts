import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ProblemError } from '../../contract/problems.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { normalizedName, readWriteSnapshot } from '../../redis/write-snapshot.ts';
import type { Gap } from '../compare/findings.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { adoptDenylist, endDenylistChange, renewDenylistChange, startDenylistChange } from '../scripts.ts';

/** What a denylist operation asked for, as its body says. */
export type DenylistRequest =
  | { operation: 'banUsernames'; replacements: ReadonlyMap<string, string> }
  | { operation: 'removeDeniedUsernames' | 'overwriteDenylist'; usernames: readonly string[] };

/** A denylist change that is the only one of its organization, until it has ended. */
export interface DenylistChange {
  /** Applies the change as the legacy service answered it; a gap where that is not possible. */
  apply: (request: DenylistRequest, answer: unknown) => Promise<Gap | undefined>;
  /** `settled`: it was applied, or took no effect. */
  end: (outcome: 'settled' | 'unknown') => Promise<void>;
}

/** How long other changes wait for an instance that died, in ms. */
const lease = 5000;
/** How long a change waits for its turn, in ms. */
const longestWait = 10_000;
const pause = 25;
/** Names in one call of the script. */
const namesAtOnce = 60;

/**
 * Begins a denylist change, which waits for the one under way, 10 s at most; then it is refused with `overloaded`.
 * `waitMs`: after how long its outcome must be visible.
 */
export async function beginDenylistChange(
  store: RedisClient,
  base: string,
  epoch: number,
  waitMs: number,
): Promise<DenylistChange> {
  const token = randomUUID();
  const deadline = performance.now() + longestWait;
  const begin = () => startDenylistChange(store, base, epoch, '', token, lease, waitMs);
  let number = await begin();
  while (number === 0) {
    if (performance.now() > deadline) {
      throw new ProblemError('overloaded', 'Another change of this denylist is under way.');
    }
    await sleep(pause);
    number = await begin();
  }
  const renewing = setInterval(() => {
    // A lease that is lost is noticed by the next call.
    renewDenylistChange(store, base, token, lease).catch(() => {});
  }, lease / 4);

  /** Applies names in parts; each under the comparison that holds by then. */
  async function applyAll(
    what: 'ban' | 'remove' | 'stage',
    names: Iterable<readonly [string, string?]>,
  ): Promise<boolean> {
    for await (const part of yieldingChunks(names, namesAtOnce)) {
      if ((await applyPart(what, part)) !== 'applied') return false;
    }
    return true;
  }

  async function applyPart(
    what: 'ban' | 'remove' | 'stage' | 'commit',
    part: readonly (readonly [string, string?])[],
  ): Promise<'lapsed' | 'applied'> {
    for (;;) {
      const snapshot = await readWriteSnapshot(store, base);
      const rows = part.map(([name, replacement]) => [
        name,
        normalizedName(snapshot, name),
        ...(replacement === undefined ? [] : [replacement, normalizedName(snapshot, replacement)]),
      ]);
      const { index } = snapshot;
      const reply = await adoptDenylist(store, base, epoch, index, token, number, what, JSON.stringify(rows));
      if (reply === 'applied' || reply === 'lapsed') return reply;
      await sleep(pause);
    }
  }

  async function overwrite(usernames: readonly string[]): Promise<boolean> {
    if ((await applyPart('stage', [])) !== 'applied') return false;
    if (!(await applyAll('stage', toRows(usernames)))) return false;
    return (await applyPart('commit', [])) === 'applied';
  }

  return {
    apply: async (request, answer) => {
      const isWhole = await (() => {
        switch (request.operation) {
          case 'banUsernames': {
            const notAdded = answer === undefined ? [] : namesNotAdded(answer);
            if (notAdded === undefined) return undefined;
            const refused = new Set(notAdded);
            return applyAll(
              'ban',
              [...request.replacements].filter(([name]) => !refused.has(name)),
            );
          }
          case 'removeDeniedUsernames': {
            const deleted = stringsIn(answer, 'usernamesDeleted');
            return deleted && applyAll('remove', toRows(deleted));
          }
          case 'overwriteDenylist':
            return overwrite(request.usernames);
        }
      })();
      if (isWhole === undefined) return 'denylist-response-unreadable';
      return isWhole ? undefined : 'denylist-change-interrupted';
    },
    end: async (outcome) => {
      clearInterval(renewing);
      await endDenylistChange(store, base, token, number, outcome);
    },
  };
}

function* toRows(names: Iterable<string>): Generator<readonly [string], void> {
  for (const name of names) yield [name];
}

/** The strings under this name; undefined where there is no such list. */
function stringsIn(answer: unknown, name: string): string[] | undefined {
  const list = (answer as Record<string, unknown> | null | undefined)?.[name];
  return isStrings(list) ? list : undefined;
}

/**
 * The names that a ban could not add; undefined where an answer has no such list. The contract does not show its shape
 * (4.3.5): any list of strings is taken for it.
 */
export function namesNotAdded(answer: unknown): string[] | undefined {
  if (isStrings(answer)) return answer;
  if (typeof answer !== 'object' || answer === null) return undefined;
  return stringsIn(answer, 'usernamesNotAdded') ?? Object.values(answer).find(isStrings);
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
