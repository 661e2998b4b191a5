import type { Counts, Fault } from './check.ts';
import { createRun } from './run.ts';
import { organizationBase } from '../keys.ts';
import { listOrganizations } from '../organizations.ts';
import { KeysMovedError, scanKeys } from '../connection/scan.ts';
import type { FsckStore } from './scripts.ts';
import type { ReindexStore } from '../reindex/scripts.ts';

export type { Counts, Fault, FaultKind } from './check.ts';

interface FsckOptions {
  /** Only this organization; all, where it is not given. */
  organizationId?: string | undefined;
  repair: boolean;
  /** Told each fault when it is found, and whether it has been repaired. */
  onFault: (fault: Fault) => void;
  signal?: AbortSignal | undefined;
}

export type FsckOutcome =
  | { kind: 'checked'; counts: Counts; found: number; repaired: number }
  | { kind: 'unknown-organization' }
  | { kind: 'interrupted' };

/** Faults remembered, so that what a scan finds twice is told once. */
const remembered = 100_000;

/**
 * Proves that what the store holds is consistent: index and profiles agree both ways, the denylist is well-formed,
 * API keys and their list agree, references can be read, no picture in use counts as loose. With `repair` it mends
 * what can be mended without guessing. The service may run meanwhile: what is reported was so at one instant, and
 * each repair looks again in the script that does it. Memory stays flat however large the store.
 */
export async function fsck(
  store: FsckStore & ReindexStore,
  prefix: string,
  { organizationId, repair, onFault, signal }: FsckOptions,
): Promise<FsckOutcome> {
  const counts: Counts = {
    organizations: 0,
    profiles: 0,
    usernames: 0,
    deniedNames: 0,
    apiKeys: 0,
    references: 0,
  };
  const told = new Set<string>();
  let found = 0;
  let repaired = 0;
  const report = (fault: Fault): void => {
    const mark = JSON.stringify([fault.organizationId, fault.kind, fault.detail]);
    if (told.has(mark)) return;
    if (told.size < remembered) told.add(mark);
    found++;
    if (fault.isRepaired) repaired++;
    onFault(fault);
  };

  const run = createRun(store, prefix, { repair, counts, report });
  const registered = await listOrganizations(store, prefix);
  const known = new Set(registered);
  for (const id of organizationId === undefined ? registered : [organizationId]) {
    if (signal?.aborted === true) return { kind: 'interrupted' };
    if (!(await run.begin(id, known.has(id)))) return { kind: 'unknown-organization' };
  }
  const start = organizationId === undefined ? `${prefix}{` : organizationBase(prefix, organizationId);
  for (let attempts = 3; ; attempts--) {
    try {
      for await (const keys of scanKeys(store, start)) {
        if (signal?.aborted === true) return { kind: 'interrupted' };
        await run.examine(keys);
      }
      break;
    } catch (error) {
      if (!(error instanceof KeysMovedError) || attempts === 1) throw error;
    }
  }
  await run.end();
  return { kind: 'checked', counts, found, repaired };
}
