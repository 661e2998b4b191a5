import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UsernameComparison } from '../../domain/usernames.ts';
import {
  copyAdoptedNames,
  copyDenied,
  copyDenylistWrites,
  copyNames,
  type Collision,
  type Rebuild,
} from './copy.ts';
import { dropLeftovers } from './generations.ts';
import type { RedisClient } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';

const openRebuild = script<
  [token: string, leaseMs: number, comparison: string],
  ['unchanged' | 'busy' | 'inconsistent'] | ['opened', current: string, next: string, buckets: number]
>('reindex/open');

const commitRebuild = script<
  [token: string, step: number, next: string, comparison: string],
  'lapsed' | 'committed'
>('reindex/commit');

const closeRebuild = script<[token: string], null>('reindex/close');

export type ReindexOutcome =
  | { kind: 'rebuilt'; usernames: number; denied: number }
  /** Names are already compared in this way. */
  | { kind: 'unchanged' }
  /** Nothing was changed. `isComplete`: these are all collisions. */
  | { kind: 'collisions'; collisions: Collision[]; isComplete: boolean }
  /** Another rebuild of this organization is in progress. */
  | { kind: 'busy' }
  /** The index and the profiles do not agree: nothing was changed; fsck reports where, and repairs it. */
  | { kind: 'inconsistent' }
  /** This process was paused for longer than its lease, or a failover has lost a part: nothing was changed. */
  | { kind: 'lapsed' }
  /** Aborted by the signal: nothing was changed. */
  | { kind: 'interrupted' };

interface ReindexOptions {
  signal?: AbortSignal | undefined;
  /** How long names stay frozen after the last call of this process, in ms. */
  lease?: number | undefined;
}

/**
 * Changes how an organization compares names ("Changing how names are compared" in README.md). Meanwhile reads
 * continue, and writes that set a name wait, then are refused as busy. Killed at any point, the freeze ends with its
 * lease, the generation in force is untouched, and a later call starts over.
 */
export async function changeComparison(
  store: RedisClient,
  base: string,
  comparison: UsernameComparison,
  { signal, lease = 10_000 }: ReindexOptions = {},
): Promise<ReindexOutcome> {
  const attempt = { store, base, token: randomUUID(), lease, comparison, signal };
  const opened = await open(attempt);
  if (opened[0] !== 'opened') return { kind: opened[0] };
  const [, current, next, buckets] = opened;
  const rebuild: Rebuild = { ...attempt, step: 0, current, next, buckets };
  try {
    const names = await copyNames(rebuild);
    if (names.kind !== 'copied') return names;
    const denied = await copyDenied(rebuild);
    if (denied.kind !== 'copied') return denied;
    const marks = await copyDenylistWrites(rebuild);
    if (marks.kind !== 'copied') return marks;
    const adopted = await copyAdoptedNames(rebuild);
    if (adopted.kind !== 'copied') return adopted;
    if (!(await commit(rebuild))) return { kind: 'lapsed' };
    return { kind: 'rebuilt', usernames: names.count, denied: denied.count };
  } finally {
    // What cannot be removed now is left to the next rebuild or fsck --repair.
    await closeRebuild(store, base, attempt.token)
      .then(async () => await dropLeftovers(store, base))
      .catch(() => {});
  }
}

/** Waits for another rebuild to end, or for the lease of one that was killed. */
async function open(attempt: Omit<Rebuild, 'step' | 'current' | 'next' | 'buckets'>) {
  const { store, base, token, lease, comparison, signal } = attempt;
  const deadline = performance.now() + lease + 1000;
  for (;;) {
    if (signal?.aborted === true) return ['interrupted'] as const;
    const opened = await openRebuild(store, base, token, lease, comparison);
    if (opened[0] !== 'busy' || performance.now() > deadline) return opened;
    await sleep(100);
  }
}

/** Whether the next generation is in force; asked again if the reply is lost. */
async function commit({ store, base, token, step, next, comparison }: Rebuild): Promise<boolean> {
  const ask = () => commitRebuild(store, base, token, step, next, comparison);
  return (await ask().catch(ask)) === 'committed';
}
