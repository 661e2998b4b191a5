import type { RedisClient } from '../connection/client.ts';
import { KeysMovedError, scanKeys } from '../connection/scan.ts';
import { organizationBase } from '../keys.ts';
import { listOrganizations } from '../organizations.ts';
import type { Counts, Fault } from './check.ts';
import { createPass } from './pass.ts';

export type { Counts, Fault, FaultKind } from './check.ts';

interface FsckOptions {
  /** Only this organization; all of them, if it is not given. */
  organizationId?: string | undefined;
  repair: boolean;
  /** Called with each fault when it is found, and whether it has been repaired. */
  onFault: (fault: Fault) => void;
  signal?: AbortSignal | undefined;
}

export type FsckOutcome =
  | {
      kind: 'checked';
      counts: Counts;
      found: number;
      repaired: number;
      /** Organizations that a migration is loading for the first time, which were not examined. */
      loading: string[];
    }
  | { kind: 'unknown-organization' }
  | { kind: 'interrupted' };

/** Faults remembered, so that one that is found twice is reported once. */
const remembered = 100_000;
/** How often the keys are walked at most, if they move between servers meanwhile. */
const attempts = 3;

/**
 * Checks that what the store holds is consistent: index and profiles agree both ways, the denylist is well-formed,
 * API keys and their list agree, references can be read, no picture in use is listed as unreferenced. With `repair`
 * it makes every repair that needs no guessing. The service may be running: a reported fault existed at one instant,
 * and each repair checks its conditions again in its script. Memory use does not grow with the store.
 */
export async function fsck(store: RedisClient, prefix: string, options: FsckOptions): Promise<FsckOutcome> {
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
      return typeof walked === 'string' ? { kind: walked } : { kind: 'checked', ...walked, ...totals };
    } catch (error) {
      if (!(error instanceof KeysMovedError) || attempt === attempts) throw error;
    }
  }
}

/** Examines every key once. */
async function walk(
  store: RedisClient,
  prefix: string,
  { organizationId, repair, onFault, signal }: FsckOptions,
): Promise<{ counts: Counts; loading: string[] } | 'unknown-organization' | 'interrupted'> {
  const pass = createPass(store, prefix, { repair, onFault });
  const registered = await listOrganizations(store, prefix);
  const known = new Set(registered);
  for (const id of organizationId === undefined ? registered : [organizationId]) {
    if (signal?.aborted === true) return 'interrupted';
    if (!(await pass.begin(id, known.has(id)))) return 'unknown-organization';
  }
  const start = organizationId === undefined ? `${prefix}{` : organizationBase(prefix, organizationId);
  for await (const keys of scanKeys(store, start)) {
    if (signal?.aborted === true) return 'interrupted';
    await pass.examine(keys);
  }
  return await pass.end();
}
