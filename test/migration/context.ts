import { createTallies } from '../../src/migration/analysis/outcomes.ts';
import { createWorkspace } from '../../src/migration/analysis/workspace.ts';
import type { MigrationContext } from '../../src/migration/engine/context.ts';
import { openIssues } from '../../src/migration/engine/issues.ts';
import { dry } from '../../src/migration/engine/scripts.ts';
import { createOrganizations } from '../../src/migration/engine/organizations.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';

/** What a piece of the migration works with, beside the tool. The caller closes its workspace. */
export function createTestContext(
  store: RedisClient,
  prefix: string,
  {
    advance = () => {},
    signal = new AbortController().signal,
    claim = dry,
  }: { advance?: () => void; signal?: AbortSignal; claim?: string } = {},
): MigrationContext {
  return {
    store,
    prefix,
    pictureUrlPrefix: '',
    snapshotAt: undefined,
    epoch: 0,
    claim,
    marksFrom: 0,
    trustsSource: false,
    workspace: createWorkspace(),
    organizations: createOrganizations(store, prefix),
    issues: openIssues(),
    tallies: createTallies(),
    progress: { begin: () => {}, next: () => {}, advance, stop: () => {} },
    concurrency: 4,
    signal,
  };
}
