import { normalizedName } from '../domain/usernames.ts';
import { randomUUID } from 'node:crypto';
import { yieldingChunks } from '../lib/time-slices.ts';
import type { RedisClient } from './connection/client.ts';
import { script } from './connection/script-loader.ts';
import {
  runChange,
  untilDecided,
  type ChangeArguments,
  type GenerationRefusal,
  type WriteSnapshot,
} from './changes.ts';

const ban = script<
  [...ChangeArguments, keyId: string, ...string[]],
  [GenerationRefusal] | ['banned', ('added' | 'skipped' | 'replacement-in-use' | 'replacement-denied')[]]
>('denylist/ban');

const remove = script<
  [...ChangeArguments, keyId: string, ...string[]],
  [GenerationRefusal] | ['removed', ('deleted' | 'in-use' | 'absent')[]]
>('denylist/remove');

const stageOpen = script<[...ChangeArguments, token: string, leaseMs: number], 'opened' | 'busy'>(
  'denylist/stage_open',
);

const stageAdd = script<
  [...ChangeArguments, token: string, leaseMs: number, ...string[]],
  [GenerationRefusal | 'lapsed'] | ['staged', added: number, positionsInUse: number[]]
>('denylist/stage_add');

const stageCommit = script<
  [...ChangeArguments, token: string, keyId: string, names: number],
  'committed' | 'lapsed' | GenerationRefusal
>('denylist/stage_commit');

const stageDrop = script<[token: string], null>('denylist/stage_drop');

/** Removes the stage of an overwrite whose process died. */
export const removeAbandonedStage = (store: RedisClient, base: string) => stageDrop(store, base, '');

/** The organization, the caller's key (for the audit trail), and what the request is checked against. */
export interface DenylistContext {
  store: RedisClient;
  base: string;
  keyId: string;
  snapshot: WriteSnapshot;
}

interface BanFailure {
  username: string;
  replacement: string;
  reason: 'replacement-in-use' | 'replacement-denied';
}

/** Another operation held the names for longer than a request may wait. Sending it again is harmless. */
interface Busy {
  kind: 'busy';
}

/** Names in one script call, which takes about half a millisecond: reads of other clients wait for it. */
const namesAtOnce = { ban: 60, remove: 60, stage: 120 };

/** How long a stage is valid after the last call of an owner that died, in ms. */
const stageLease = 5000;

/** Denies each name and renames its user, per name both or neither (contract 4.3). */
export async function banUsernames(
  context: DenylistContext,
  replacements: ReadonlyMap<string, string>,
): Promise<{ kind: 'banned'; failures: BanFailure[] } | Busy> {
  const { store, base, keyId } = context;
  const failures: BanFailure[] = [];
  let snapshot = context.snapshot;
  const normalized = (name: string): string => normalizedName(name, snapshot.settings.comparison);
  // A replacement that this request denies is refused, whatever the order.
  let denied = await normalizedNames(snapshot, replacements.keys());

  for await (const chunk of yieldingChunks(replacements, namesAtOnce.ban)) {
    for (let rest = chunk; rest.length > 0;) {
      const outcomes = await untilDecided(store, base, snapshot, async (now) => {
        const isAsBefore = now.settings.comparison === snapshot.settings.comparison;
        snapshot = now;
        if (!isAsBefore) denied = await normalizedNames(snapshot, replacements.keys());
        const asked = rest.flatMap(([username, replacement]) => {
          const other = normalized(replacement);
          return [username, normalized(username), replacement, denied.has(other) ? '' : other];
        });
        const reply = await runChange(ban, store, base, snapshot, keyId, ...asked);
        return reply[0] === 'banned' && reply[1].length > 0 ? reply[1] : undefined;
      });
      if (outcomes === undefined) return { kind: 'busy' };
      for (const [position, reason] of outcomes.entries()) {
        const [username, replacement] = rest[position] ?? ['', ''];
        if (reason === 'replacement-in-use' || reason === 'replacement-denied') {
          failures.push({ username, replacement, reason });
        }
      }
      rest = rest.slice(outcomes.length);
    }
  }
  return { kind: 'banned', failures: await judgeByResult(snapshot, replacements, failures) };
}

/**
 * The failures that are left once the whole request has taken effect: not that of a name which was added in another
 * spelling. A replacement that this request was to deny but could not is in use rather than denied, unless it was to
 * replace itself.
 */
async function judgeByResult(
  snapshot: WriteSnapshot,
  replacements: ReadonlyMap<string, string>,
  failures: readonly BanFailure[],
): Promise<BanFailure[]> {
  if (failures.length === 0) return [];
  const normalized = (name: string): string => normalizedName(name, snapshot.settings.comparison);
  const failed = new Set(failures.map(({ username }) => username));
  const notDenied = await normalizedNames(snapshot, failed);
  for await (const chunk of yieldingChunks(replacements.keys())) {
    for (const name of chunk) if (!failed.has(name)) notDenied.delete(normalized(name));
  }
  return failures.flatMap((failure) => {
    const name = normalized(failure.username);
    const replacement = normalized(failure.replacement);
    if (!notDenied.has(name)) return [];
    const isInUse = notDenied.has(replacement) && replacement !== name;
    return isInUse ? { ...failure, reason: 'replacement-in-use' as const } : failure;
  });
}

async function normalizedNames(snapshot: WriteSnapshot, names: Iterable<string>): Promise<Set<string>> {
  const normalized = new Set<string>();
  for await (const chunk of yieldingChunks(names)) {
    for (const name of chunk) normalized.add(normalizedName(name, snapshot.settings.comparison));
  }
  return normalized;
}

/** Removes names from the denylist, except those in use, in the request's order and spelling (contract 4.4). */
export async function removeDenied(
  context: DenylistContext,
  usernames: Iterable<string>,
): Promise<{ kind: 'removed'; deleted: string[]; inUse: string[] } | Busy> {
  const { store, base, keyId } = context;
  const deleted: string[] = [];
  const inUse: string[] = [];
  const seen = new Set<string>();
  let snapshot = context.snapshot;

  for await (const chunk of yieldingChunks(usernames, namesAtOnce.remove)) {
    const removed = await untilDecided(store, base, snapshot, async (now) => {
      snapshot = now;
      const pairs = chunk.map((name) => [name, normalizedName(name, now.settings.comparison)] as const);
      const reply = await runChange(remove, store, base, now, keyId, ...pairs.flat());
      if (reply[0] !== 'removed') return undefined;
      for (const [position, outcome] of reply[1].entries()) {
        const [name, normalized] = pairs[position] ?? ['', ''];
        if (!seen.has(normalized) && outcome === 'deleted') deleted.push(name);
        if (!seen.has(normalized) && outcome === 'in-use') inUse.push(name);
        seen.add(normalized);
      }
      return reply;
    });
    if (removed === undefined) return { kind: 'busy' };
  }
  return { kind: 'removed', deleted, inUse };
}

/**
 * Replaces the whole denylist, or leaves it as it was when a given name is in use (contract 4.5). The list is staged in
 * parts, and no staged name can be claimed, until the stage becomes the denylist in one step. Once the lease of a dead
 * owner is over its stage is ignored; the next overwrite or sweep removes it.
 */
export async function overwriteDenylist(
  context: DenylistContext,
  usernames: Iterable<string>,
): Promise<{ kind: 'overwritten' } | { kind: 'in-use'; usernames: string[] } | Busy> {
  const { store, base, keyId } = context;
  const overwritten = await untilDecided(store, base, context.snapshot, async (snapshot) => {
    const token = randomUUID();
    const opened = await runChange(stageOpen, store, base, snapshot, token, stageLease);
    if (opened === 'busy') return undefined;
    const staged = await fillStage(store, base, token, snapshot, usernames).catch(async (error: unknown) => {
      // Where Redis is full, the stage itself may be what fills it.
      await stageDrop(store, base, token).catch(() => {});
      throw error;
    });
    if (staged.kind === 'staged') {
      const committed = await runChange(stageCommit, store, base, snapshot, token, keyId, staged.names);
      if (committed === 'committed') return { kind: 'overwritten' as const };
    }
    await stageDrop(store, base, token);
    return staged.kind === 'in-use' ? staged : undefined;
  });
  return overwritten ?? { kind: 'busy' };
}

async function fillStage(
  store: RedisClient,
  base: string,
  token: string,
  snapshot: WriteSnapshot,
  usernames: Iterable<string>,
): Promise<{ kind: 'staged'; names: number } | { kind: 'in-use'; usernames: string[] } | { kind: 'again' }> {
  /** By normalized name, in the spelling that came first. */
  const inUse = new Map<string, string>();
  let names = 0;
  for await (const chunk of yieldingChunks(usernames, namesAtOnce.stage)) {
    const pairs = chunk.map((name) => [name, normalizedName(name, snapshot.settings.comparison)] as const);
    const reply = await runChange(stageAdd, store, base, snapshot, token, stageLease, ...pairs.flat());
    if (reply[0] !== 'staged') return { kind: 'again' };
    names += reply[1];
    for (const position of reply[2]) {
      const [name, normalized] = pairs[position] ?? ['', ''];
      if (!inUse.has(normalized)) inUse.set(normalized, name);
    }
  }
  return inUse.size === 0 ? { kind: 'staged', names } : { kind: 'in-use', usernames: [...inUse.values()] };
}
