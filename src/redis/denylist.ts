import { randomUUID } from 'node:crypto';
import { createSketch } from '../lib/sketch.ts';
import { inTurns } from '../lib/time-slices.ts';
import type { Store } from './scripts.ts';
import { createPatience, formOf, readStanding, type Patience, type Standing } from './standing.ts';

/** A denylist operation's place: the organization, the key that asked (for the audit trail), what it was judged by. */
export interface DenylistContext {
  store: Store;
  base: string;
  keyId: string;
  standing: Standing;
}

interface BanFailure {
  username: string;
  replacement: string;
  reason: 'replacement-in-use' | 'replacement-denied';
}

/** `busy`: another operation held the names for longer than a request may wait. Repeating the request is harmless. */
export type BanOutcome = { kind: 'banned'; failures: BanFailure[] } | { kind: 'busy' };
export type RemoveOutcome = { kind: 'removed'; deleted: string[]; inUse: string[] } | { kind: 'busy' };
export type OverwriteOutcome =
  { kind: 'overwritten' } | { kind: 'in-use'; usernames: string[] } | { kind: 'busy' };

/**
 * Names in one script call: few enough that it takes half a millisecond or so, for that is what a read of anybody's
 * may have to wait. A request has one call under way at a time.
 */
const namesAtOnce = { ban: 60, remove: 60, stage: 120 };

/** How long a stage outlives the last sign of life of its owner, in ms. */
const stageLease = 5000;

/**
 * Denies each name and renames its user, per name both or neither (contract 4.3). Of two entries that want the
 * same replacement the first gets it. The replacements are gone through several times; each name is there once.
 */
export async function banUsernames(
  context: DenylistContext,
  replacements: Iterable<readonly [string, string]>,
): Promise<BanOutcome> {
  const { store, base, keyId } = context;
  const patience = createPatience();
  const failures: BanFailure[] = [];
  let standing = context.standing;
  let denied = await deniedReplacements(standing, replacements);

  for await (const chunk of inTurns(replacements, namesAtOnce.ban)) {
    for (let rest = chunk; rest.length > 0;) {
      const asked = rest.flatMap(([username, replacement]) => {
        const form = formOf(standing, replacement);
        return [username, formOf(standing, username), replacement, denied.has(form) ? '' : form];
      });
      const reply = await store.banUsernames(base, standing.index, keyId, ...asked);
      if (reply[0] === 'banned') {
        for (const [position, [username, replacement]] of rest.entries()) {
          const reason = reply[1][position];
          if (reason === 'replacement-in-use' || reason === 'replacement-denied') {
            failures.push({ username, replacement, reason });
          }
        }
        rest = rest.slice(reply[1].length);
        if (reply[1].length > 0) patience.restart();
        if (rest.length === 0) break;
      }
      if (!(await patience.wait())) return { kind: 'busy' };
      if (reply[0] === 'stale') {
        standing = await readStanding(store, base);
        denied = await deniedReplacements(standing, replacements);
      }
    }
  }
  return { kind: 'banned', failures };
}

/**
 * The forms of those replacements that the request denies itself. Few are, so all of its names need not be kept to
 * tell which: a sketch of them leaves few to be looked for.
 */
async function deniedReplacements(
  standing: Standing,
  replacements: Iterable<readonly [string, string]>,
): Promise<ReadonlySet<string>> {
  const sketch = createSketch();
  for await (const chunk of inTurns(replacements)) {
    for (const [username] of chunk) sketch.add(formOf(standing, username));
  }
  const suspects = new Set<string>();
  for await (const chunk of inTurns(replacements)) {
    for (const [, replacement] of chunk) {
      const form = formOf(standing, replacement);
      if (sketch.has(form)) suspects.add(form);
    }
  }
  const denied = new Set<string>();
  if (suspects.size === 0) return denied;
  for await (const chunk of inTurns(replacements)) {
    for (const [username] of chunk) {
      const form = formOf(standing, username);
      if (suspects.has(form)) denied.add(form);
    }
  }
  return denied;
}

/**
 * Removes names from the denylist, save those in use (contract 4.4); in the request's order and spelling. The names
 * are gone through several times.
 */
export async function removeDenied(
  context: DenylistContext,
  usernames: Iterable<string>,
): Promise<RemoveOutcome> {
  const { store, base, keyId } = context;
  const patience = createPatience();
  const deleted: string[] = [];
  const inUse: string[] = [];
  let standing = context.standing;
  let repeated = await repeatedForms(standing, usernames);
  const seen = new Set<string>();

  for await (const chunk of inTurns(usernames, namesAtOnce.remove)) {
    for (;;) {
      const pairs = chunk.map((name) => [name, formOf(standing, name)] as const);
      const fresh = firstOfEachForm(pairs, seen);
      const reply = await store.removeDenied(base, standing.index, keyId, ...fresh.flat());
      if (reply[0] === 'removed') {
        for (const [position, [name, form]] of fresh.entries()) {
          if (repeated.has(form)) seen.add(form);
          if (reply[1][position] === 'deleted') deleted.push(name);
          if (reply[1][position] === 'in-use') inUse.push(name);
        }
        patience.restart();
        break;
      }
      if (!(await patience.wait())) return { kind: 'busy' };
      standing = await readStanding(store, base);
      repeated = await repeatedForms(standing, usernames);
    }
  }
  return { kind: 'removed', deleted, inUse };
}

/** The forms that come more than once; by chance one more. */
async function repeatedForms(standing: Standing, usernames: Iterable<string>): Promise<ReadonlySet<string>> {
  const sketch = createSketch();
  const repeated = new Set<string>();
  for await (const chunk of inTurns(usernames)) {
    for (const name of chunk) {
      const form = formOf(standing, name);
      if (sketch.add(form)) repeated.add(form);
    }
  }
  return repeated;
}

/**
 * Replaces the whole denylist, or leaves it as it was when a given name is in use (contract 4.5). The list is
 * staged in parts, and no staged name can be claimed; so what was found unused is unused still when the stage
 * becomes the denylist in one step. A stage whose owner dies expires. The names may be gone through several times.
 */
export async function overwriteDenylist(
  context: DenylistContext,
  usernames: Iterable<string>,
): Promise<OverwriteOutcome> {
  const { store, base, keyId } = context;
  const patience = createPatience();
  let standing = context.standing;
  for (;;) {
    const token = randomUUID();
    if (!(await openStage(store, base, token, patience))) return { kind: 'busy' };
    // Where Redis cannot be reached half-way, the stage expires by itself.
    const staged = await fillStage(store, base, token, standing, usernames);
    if (staged.kind === 'staged') {
      const committed = await store.stageCommit(base, token, standing.index, keyId);
      if (committed === 'committed') return { kind: 'overwritten' };
    }
    await store.stageDrop(base, token);
    if (staged.kind === 'in-use') return staged;
    if (!(await patience.wait())) return { kind: 'busy' };
    standing = await readStanding(store, base);
  }
}

async function openStage(store: Store, base: string, token: string, patience: Patience): Promise<boolean> {
  while ((await store.stageOpen(base, token, stageLease)) === 'busy') {
    if (!(await patience.wait())) return false;
  }
  return true;
}

async function fillStage(
  store: Store,
  base: string,
  token: string,
  standing: Standing,
  usernames: Iterable<string>,
): Promise<{ kind: 'staged' } | { kind: 'in-use'; usernames: string[] } | { kind: 'again' }> {
  const inUse: (readonly [string, string])[] = [];
  for await (const chunk of inTurns(usernames, namesAtOnce.stage)) {
    const pairs = chunk.map((name) => [name, formOf(standing, name)] as const);
    const reply = await store.stageAdd(base, token, stageLease, standing.index, ...pairs.flat());
    if (reply[0] !== 'staged') return { kind: 'again' };
    for (const position of reply[1]) {
      const pair = pairs[position];
      if (pair !== undefined) inUse.push(pair);
    }
  }
  if (inUse.length === 0) return { kind: 'staged' };
  return { kind: 'in-use', usernames: firstOfEachForm(inUse, new Set()).map(([name]) => name) };
}

/** The pairs whose form is neither in `seen` nor earlier among them. */
function firstOfEachForm<Pair extends readonly [string, string]>(
  pairs: readonly Pair[],
  seen: ReadonlySet<string>,
): Pair[] {
  const fresh = new Map<string, Pair>();
  for (const pair of pairs) {
    if (!seen.has(pair[1]) && !fresh.has(pair[1])) fresh.set(pair[1], pair);
  }
  return [...fresh.values()];
}
