import { normalizedName } from '../../domain/usernames.ts';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ProblemError } from '../../contract/problems.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { readWriteSnapshot } from '../../redis/changes.ts';
import type { Gap } from '../compare/findings.ts';
import type { Change, Credentials } from '../forward/calls.ts';
import { readJson } from '../forward/content.ts';
import { outcomeDelay, visibleAfter, type MarkedChange, type MirrorOptions } from './mirrored-change.ts';

const beginChange = script<
  [epoch: number, index: '', token: string, leaseMs: number, waitMs: number],
  number
>('cutover/adopt/begin_denylist_change');
const renewChange = script<[token: string, leaseMs: number], number>('cutover/adopt/renew_denylist_change');
const endChange = script<[token: string, number: number], 'ended' | 'lapsed'>(
  'cutover/adopt/end_denylist_change',
);
const applyRows = script<
  [
    epoch: number,
    index: string,
    token: string,
    number: number,
    what: 'ban' | 'remove' | 'stage' | 'commit',
    rows: string,
  ],
  'stale' | 'frozen' | 'lapsed' | 'applied'
>('cutover/adopt/denylist');

/** How long other changes wait for an instance that died, in ms. */
const lease = 5000;
/** How long a change waits for its turn, in ms. */
const longestWait = 10_000;
const pause = 25;
/** Names in one call of the script. */
const namesAtOnce = 60;

/** A name, and its replacement if it is banned. */
type Row = readonly [name: string, replacement?: string];

/**
 * Begins a denylist change, the only one of its organization until it has ended. It waits for the one under way, 10 s
 * at most; then it is refused with `overloaded`.
 */
export async function beginDenylistChange(
  { store, legacy, findings }: MirrorOptions,
  { organizationId, base }: Credentials,
  { operation, admission, readBody }: Change,
): Promise<MarkedChange> {
  const { epoch } = admission;
  const token = randomUUID();
  const deadline = performance.now() + longestWait;
  const begin = () => beginChange(store, base, epoch, '', token, lease, visibleAfter(legacy));
  await findings.register(organizationId);
  let number = await begin();
  while (number === 0) {
    if (performance.now() > deadline) {
      throw new ProblemError('overloaded', 'Another change of this denylist is under way.');
    }
    await sleep(pause);
    number = await begin();
  }
  const renewing = setInterval(() => {
    // The next call notices a lost lease.
    renewChange(store, base, token, lease).catch(() => {});
  }, lease / 4);

  /**
   * Applies an accepted change as the legacy service answered it; returns the gap that is left if that is not possible.
   */
  async function apply(answer: unknown): Promise<Gap | undefined> {
    switch (operation) {
      case 'banUsernames': {
        // An empty body is an answer, too: all were added.
        const notAdded = answer === undefined ? [] : namesNotAdded(answer);
        if (notAdded === undefined) return 'denylist-response-unreadable';
        const refused = new Set(notAdded);
        const replacements = [...((await readBody()) as ReadonlyMap<string, string>)];
        return await applyAll(
          'ban',
          replacements.filter(([name]) => !refused.has(name)),
        );
      }
      case 'removeDeniedUsernames': {
        const deleted = stringsIn(answer, 'usernamesDeleted');
        return deleted === undefined
          ? 'denylist-response-unreadable'
          : await applyAll('remove', toRows(deleted));
      }
      default: {
        const usernames = (await readBody()) as readonly string[];
        return (
          (await applyPart('stage', [])) ??
          (await applyAll('stage', toRows(usernames))) ??
          (await applyPart('commit', []))
        );
      }
    }
  }

  /** Applies names in parts, each under the comparison in force by then. */
  async function applyAll(what: 'ban' | 'remove' | 'stage', names: Iterable<Row>): Promise<Gap | undefined> {
    for await (const part of yieldingChunks(names, namesAtOnce)) {
      const gap = await applyPart(what, part);
      if (gap !== undefined) return gap;
    }
    return undefined;
  }

  async function applyPart(
    what: 'ban' | 'remove' | 'stage' | 'commit',
    part: readonly Row[],
  ): Promise<Gap | undefined> {
    for (;;) {
      const snapshot = await readWriteSnapshot(store, base);
      const rows = part.map(([name, replacement]) => [
        name,
        normalizedName(name, snapshot.settings.comparison),
        ...(replacement === undefined
          ? []
          : [replacement, normalizedName(replacement, snapshot.settings.comparison)]),
      ]);
      const { index } = snapshot;
      const reply = await applyRows(store, base, epoch, index, token, number, what, JSON.stringify(rows));
      if (reply === 'applied') return undefined;
      if (reply === 'lapsed') return 'denylist-change-interrupted';
      await sleep(pause);
    }
  }

  /** A gap is recorded before the mark is removed. */
  async function end(gap?: Gap): Promise<void> {
    if (gap !== undefined) {
      findings.gap(organizationId, gap, outcomeDelay(legacy));
      await findings.flush();
    }
    clearInterval(renewing);
    await endChange(store, base, token, number);
  }

  const endInDoubt = () => end('denylist-outcome-unknown');
  return {
    accepted: async (response, whole) => {
      // A body that is not JSON says nothing.
      const answer = whole?.length === 0 ? undefined : ((await readJson(response, whole)) ?? null);
      await end(await apply(answer).catch((): Gap => 'denylist-change-interrupted'));
    },
    refused: () => end(),
    unknown: endInDoubt,
    leftBehind: endInDoubt,
  };
}

function* toRows(names: Iterable<string>): Generator<Row, void> {
  for (const name of names) yield [name];
}

/** The strings under this name; undefined if there is no such list. */
function stringsIn(answer: unknown, name: string): string[] | undefined {
  const list = (answer as Record<string, unknown> | null | undefined)?.[name];
  return isStrings(list) ? list : undefined;
}

/**
 * The names that a ban could not add; undefined if an answer has no such list. The contract does not show its shape
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
