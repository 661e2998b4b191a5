import { normalizedName } from '../../domain/usernames.ts';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ProblemError } from '../../contract/problems.ts';
import { yieldingChunks, yieldingItems } from '../../lib/time-slices.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { denylistChangeKey } from '../../redis/keys.ts';
import { readWriteSnapshot } from '../../redis/changes.ts';
import type { Gap } from '../compare/pending.ts';
import type { ForwardedChange, Credentials } from '../forward/calls.ts';
import { namesNotAdded, stringsIn } from '../forward/denylist-answers.ts';
import { claimLease, type Lease } from '../lease.ts';
import { beginChange, settleChange } from './adoption.ts';
import { outcomeDelay, visibleAfter, type MirrorOptions, type Settle } from './mirrored-change.ts';

type PartKind = 'ban' | 'remove' | 'stage' | 'commit';
const applyRows = script<
  [epoch: number, index: string, token: string, number: number, kind: PartKind, rows: string, keyId: string],
  'frozen' | 'lapsed' | 'again' | 'applied'
>('cutover/adopt/denylist');

const maxWaitMs = 10_000;
const pause = 25;
/** Names in one call of the script. */
const namesAtOnce = 60;
/** How often an overwrite is staged before it counts as interrupted. */
const mostStages = 5;

/** A name, followed by its replacement if it is banned. */
type ListedName = readonly [name: string, replacement?: string];

/** Begins a denylist change, one at a time in its organization; `overloaded` if its turn does not come in 10 s. */
export async function beginDenylistChange(
  { store, legacy, findings, signal }: MirrorOptions,
  { organizationId, base }: Credentials,
  { operation, found, admission, readBody }: ForwardedChange,
): Promise<Settle> {
  const { epoch } = admission;
  // Unknown if Redis was away when the request came.
  const keyId = found?.kind === 'known' ? found.caller.keyId : 'unknown';
  const token = randomUUID();
  const deadline = performance.now() + maxWaitMs;
  await findings.register(organizationId);
  let lease: Lease | undefined;
  while ((lease = await claimLease(store, denylistChangeKey(base), token)) === undefined) {
    if (signal.aborted || performance.now() > deadline) {
      throw new ProblemError('overloaded', 'Another change of this denylist is under way.');
    }
    await sleep(pause);
  }
  const { release } = lease;
  const number = await beginChange(store, base, epoch, '', '', visibleAfter(legacy), '').catch(
    async (error: unknown) => {
      await release().catch(() => {});
      throw error;
    },
  );

  /**
   * Applies an accepted change as the legacy service answered it; returns the gap that is left if that is not possible.
   */
  async function apply(answer: unknown): Promise<Gap | undefined> {
    const isRemoval = operation === 'removeDeniedUsernames';
    const listed = isRemoval ? stringsIn(answer, 'usernamesDeleted') : namesNotAdded(answer);
    if (listed === undefined) return 'denylist-response-unreadable';
    if (isRemoval && listed.length === 0) return undefined;
    // A removal need not follow the contract, since the answer has the names; what was asked for is then unknown.
    const requested = await readNames().catch((error: unknown) => {
      if (!isRemoval) throw error;
      return toRows(listed);
    });
    const others = await withoutListed(requested, listed);
    if (others === undefined) return 'denylist-response-unreadable';
    if (isRemoval) await applyAll('remove', toRows(listed));
    else if (operation === 'banUsernames') await applyAll('ban', others);
    else if (listed.length === 0) await replaceAll(others);
    return undefined;
  }

  const readNames = async () => toRows((await readBody()) as ReadonlyMap<string, string> | readonly string[]);

  /**
   * Those of the names that the legacy service has not listed: it may spell a name as the organization compares it.
   * Undefined if it has listed one that was not asked for.
   */
  async function withoutListed(
    requested: readonly ListedName[],
    listed: readonly string[],
  ): Promise<readonly ListedName[] | undefined> {
    if (listed.length === 0) return requested;
    const { comparison } = (await readWriteSnapshot(store, base)).settings;
    const forms = new Set(listed.map((name) => normalizedName(name, comparison)));
    const asked = new Set<string>();
    const others: ListedName[] = [];
    for await (const row of yieldingItems(requested)) {
      const form = normalizedName(row[0], comparison);
      if (forms.has(form)) asked.add(form);
      else others.push(row);
    }
    return asked.size === forms.size ? others : undefined;
  }

  /**
   * Makes these names the denylist in one step. They are staged again from the beginning if names are compared in
   * another way by then, or the stage was lost; throws if that happens too often.
   */
  async function replaceAll(names: readonly ListedName[]): Promise<void> {
    for (let stages = 0; stages < mostStages; stages++) {
      await applyPart('stage', []);
      if ((await applyAll('stage', names)) && (await applyPart('commit', []))) return;
    }
    throw new Error('the stage of a denylist change was lost again and again');
  }

  /** Applies names in parts, each under the comparison in force by then; false if their stage has to begin again. */
  async function applyAll(kind: PartKind, names: Iterable<ListedName>): Promise<boolean> {
    for await (const part of yieldingChunks(names, namesAtOnce)) {
      if (!(await applyPart(kind, part))) return false;
    }
    return true;
  }

  /** False if it belongs to a stage that has to begin again; throws if the lease is lost. */
  async function applyPart(kind: PartKind, part: readonly ListedName[]): Promise<boolean> {
    for (;;) {
      const { index, settings } = await readWriteSnapshot(store, base);
      const rows = part.map((names) =>
        (names as readonly string[]).flatMap((name) => [name, normalizedName(name, settings.comparison)]),
      );
      const reply = await applyRows(
        store,
        base,
        epoch,
        index,
        token,
        number,
        kind,
        JSON.stringify(rows),
        keyId,
      );
      if (reply === 'applied' || reply === 'again') return reply === 'applied';
      if (reply === 'lapsed') throw new Error('the lease of a denylist change was lost');
      await sleep(pause);
    }
  }

  /** A gap is recorded before the mark is removed. */
  async function end(gap?: Gap): Promise<void> {
    if (gap !== undefined) {
      findings.recordGap(organizationId, gap, outcomeDelay(legacy));
      await findings.flush();
    }
    try {
      await settleChange(store, base, '', number, 0);
    } finally {
      await release();
    }
  }

  return async (outcome) => {
    if (outcome.kind === 'refused') await end();
    else if (outcome.kind !== 'accepted') await end('denylist-outcome-unknown');
    else await end(await apply(outcome.answer).catch((): Gap => 'denylist-change-interrupted'));
  };
}

function toRows(names: ReadonlyMap<string, string> | readonly string[]): readonly ListedName[] {
  return names instanceof Map ? [...names] : [...names.values()].map((name) => [name]);
}
