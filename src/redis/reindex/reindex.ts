import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UsernameComparison } from '../../domain/usernames.ts';
import { dropGeneration } from './generations.ts';
import { addDenied, addNames, keepMarks, type Collision, type Rebuild } from './steps.ts';
import type { ReindexStore } from './scripts.ts';

export type ReindexOutcome =
  | { kind: 'rebuilt'; usernames: number; denied: number }
  /** The comparison is the wanted one already. */
  | { kind: 'unchanged' }
  /** Nothing was changed. `isComplete`: no more collisions than these. */
  | { kind: 'collisions'; collisions: Collision[]; isComplete: boolean }
  | { kind: 'unknown-organization' }
  /** Another rebuild of this organization is under way. */
  | { kind: 'busy' }
  /** This process was held up for so long that names could change again: nothing was changed. */
  | { kind: 'lapsed' }
  /** The signal came: nothing was changed. */
  | { kind: 'interrupted' };

interface ReindexOptions {
  signal?: AbortSignal | undefined;
  /** How long names stay frozen after the last sign of life of this process, in ms. */
  lease?: number | undefined;
}

/**
 * Changes how an organization compares names. Names cannot change meanwhile (writes that set one wait, then are
 * refused as busy), reads go on. The next generation of the index and of the denylist is built beside the one in
 * force from all profiles; where no two users' names would be one, a single step puts it in force. Killed at any
 * point, the freeze ends with its lease, the generation in force is untouched, and a later call begins anew.
 */
export async function changeComparison(
  store: ReindexStore,
  base: string,
  comparison: UsernameComparison,
  { signal, lease = 10_000 }: ReindexOptions = {},
): Promise<ReindexOutcome> {
  const token = randomUUID();
  const opened = await open(store, base, token, lease, comparison, signal);
  if (opened[0] !== 'opened') return { kind: opened[0] };
  const [, current, next] = opened;
  let unused = next;
  try {
    const rebuild: Rebuild = { store, base, token, lease, comparison, current, next, signal };
    const names = await addNames(rebuild);
    if (names.kind !== 'added') return names;
    const denied = await addDenied(rebuild);
    if (denied.kind !== 'added') return denied;
    await keepMarks(rebuild);
    const committed = await store.reindexCommit(base, token, lease, next, comparison);
    if (committed === 'lapsed') return { kind: committed };
    unused = current;
    return { kind: 'rebuilt', usernames: names.count, denied: denied.count };
  } finally {
    // What cannot be removed now, the next rebuild or fsck --repair removes.
    await discard(store, base, token, lease, unused).catch(() => {});
  }
}

/** Another tool may still be removing the generation it has replaced: that takes a second or so. */
async function open(
  store: ReindexStore,
  base: string,
  token: string,
  lease: number,
  comparison: UsernameComparison,
  signal: AbortSignal | undefined,
) {
  for (let attempts = 20; ; attempts--) {
    if (signal?.aborted === true) return ['interrupted'] as const;
    const opened = await store.reindexOpen(base, token, lease, comparison);
    if (opened[0] !== 'busy' || attempts === 0) return opened;
    await sleep(100);
  }
}

/** Lets names change again, then removes a generation; until that is done, no other rebuild begins. */
async function discard(
  store: ReindexStore,
  base: string,
  token: string,
  lease: number,
  generation: string,
): Promise<void> {
  if ((await store.reindexClose(base, token, lease)) === 'lapsed') return;
  await dropGeneration(store, base, generation);
  await store.reindexClose(base, token, 0);
}
