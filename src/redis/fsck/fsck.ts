import type { RedisClient } from '../connection/client.ts';
import { isKeysMoved } from '../connection/scan.ts';
import type { Fault } from './check.ts';
import { walk, type Walked, type WalkOptions } from './walk.ts';

export type { Counts, Fault, FaultKind } from './check.ts';

export type FsckOutcome =
  (Walked & { found: number; repaired: number }) | { kind: 'unknown-organization' } | { kind: 'interrupted' };

/** Faults remembered, so that one that is found twice is reported once. */
const remembered = 100_000;
/** The maximum number of scans of all keys, if they move between servers meanwhile. */
const attempts = 3;

/**
 * Checks that what the store holds is consistent: index and profiles agree both ways, the denylist is well-formed,
 * API keys and their list agree, references can be read, no picture in use is listed as unreferenced. With `repair`
 * it makes every repair that needs no guessing. The service may be running: a reported fault existed at one instant,
 * and each repair checks its conditions again in its script. Memory use does not grow with the store.
 */
export async function fsck(store: RedisClient, prefix: string, options: WalkOptions): Promise<FsckOutcome> {
  const reported = new Set<string>();
  const totals = { found: 0, repaired: 0 };
  const onFault = (fault: Fault): void => {
    const identity = JSON.stringify([fault.organizationId, fault.kind, fault.detail]);
    if (reported.has(identity)) return;
    if (reported.size < remembered) reported.add(identity);
    totals.found++;
    if (fault.isRepaired) totals.repaired++;
    options.onFault(fault);
  };
  for (let attempt = 1; ; attempt++) {
    try {
      const walked = await walk(store, prefix, { ...options, onFault });
      return walked.kind === 'checked' ? { ...walked, ...totals } : walked;
    } catch (error) {
      if (!isKeysMoved(error) || attempt === attempts) throw error;
    }
  }
}
