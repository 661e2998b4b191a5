import type { ReindexStore } from '../reindex/scripts.ts';
import type { FsckStore } from './scripts.ts';
import type { WriteSnapshot } from '../write-snapshot.ts';

/** What fsck can find; README.md beside the folder says what each means. */
export type FaultKind =
  | 'unregistered-organization'
  | 'settings-missing'
  | 'settings-invalid'
  | 'wrong-type'
  | 'profile-undated'
  | 'picture-loose'
  | 'reference-unreadable'
  | 'username-malformed'
  | 'username-not-indexed'
  | 'username-shared'
  | 'index-entry-stale'
  | 'generation-left-over'
  | 'denied-name-misfiled'
  | 'key-invalid'
  | 'key-not-listed'
  | 'key-list-stale'
  | 'loose-file-undated';

export interface Fault {
  organizationId: string;
  kind: FaultKind;
  /** One sentence: what is wrong with what, and what to do where it cannot be repaired. */
  detail: string;
  isRepaired: boolean;
}

/** How much was looked at. */
export interface Counts {
  organizations: number;
  profiles: number;
  usernames: number;
  deniedNames: number;
  apiKeys: number;
  references: number;
}

/** Whose faults are told, and whether they are repaired. */
export interface Teller {
  organizationId: string;
  repair: boolean;
  report: (fault: Fault) => void;
}

/** One organization under examination. */
export interface Check extends Teller {
  store: FsckStore & ReindexStore;
  base: string;
  /** Read anew where a script says that it is stale. */
  snapshot: WriteSnapshot;
  counts: Counts;
}

/** What a repair came to; `changed`: the fault was gone when it was looked at again. */
export type Repair = 'mended' | 'changed' | 'stale' | 'frozen' | 'staged' | 'shared';

/**
 * Tells a fault, after having repaired it where that is asked for and possible. What the running service has put
 * right or changed meanwhile is no fault.
 */
export async function tell(
  { organizationId, repair: isRepairing, report }: Teller,
  kind: FaultKind,
  detail: string,
  repair?: () => Promise<Repair>,
): Promise<void> {
  const outcome = isRepairing ? await repair?.() : undefined;
  if (outcome !== 'changed') report({ organizationId, kind, detail, isRepaired: outcome === 'mended' });
}

/** Text as it appears in a fault's detail. */
export const quote = (text: string): string => JSON.stringify(text);

/** Things in one script call: few enough that none holds Redis for more than a few milliseconds. */
const chunkSize = 200;

export function chunksOf<Item>(items: readonly Item[]): Item[][] {
  const chunks: Item[][] = [];
  for (let at = 0; at < items.length; at += chunkSize) chunks.push(items.slice(at, at + chunkSize));
  return chunks;
}
