import type { Tallies } from './outcomes.ts';
import type { Workspace } from '../../lib/bounded-memory/workspace.ts';
import type { Issues } from './issues.ts';
import type { Organizations } from './organizations.ts';
import type { Progress } from './progress.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

/** What every part of a migration works with; whoever opens it closes it. */
export interface MigrationContext {
  readonly store: RedisClient;
  readonly prefix: string;
  /** What the URLs of our own picture files begin with. */
  readonly pictureUrlPrefix: string;
  /**
   * When the source's snapshot was opened, by the store's clock in ms; undefined if unknown. Later adoptions from the
   * legacy service are newer than the source.
   */
  readonly snapshotAt: number | undefined;
  /** The epoch under which this writes: Redis refuses it once a switch has raised its own. */
  readonly epoch: number;
  /** What this writes under (lua/migration/run/claim.lua); `dry` where calls only say what they would do. */
  readonly claim: string;
  /** The epoch below which marks of what was written here do not count: the source is right about those. */
  readonly marksFrom: number;
  /** Whether profiles that are newer in Redis are overwritten as well, unless they were changed here. */
  readonly trustsSource: boolean;
  readonly workspace: Workspace;
  readonly organizations: Organizations;
  readonly issues: Issues;
  /** What has become of the rows, or would. */
  readonly tallies: Tallies;
  readonly progress: Progress;
  /** To be awaited before a call that changes records which clients can reach. */
  readonly beforeChange: () => Promise<void>;
  /** Aborted when the work is to stop, at the next chunk. */
  readonly signal: AbortSignal;
}
