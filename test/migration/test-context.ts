import { createTallies } from '../../src/migration/context/outcomes.ts';
import { createWorkspace } from '../../src/lib/bounded-memory/workspace.ts';
import type { MigrationContext } from '../../src/migration/context/context.ts';
import { openChosen, type Chosen } from '../../src/migration/engine/read/choose.ts';
import { openIssues } from '../../src/migration/context/issues.ts';
import { dry } from '../../src/migration/engine/scripts.ts';
import { createOrganizations } from '../../src/migration/context/organizations.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import type { Tool } from '../support/tools/migrate.ts';

interface ContextChoice {
  advance?: () => void;
  signal?: AbortSignal;
  claim?: string;
}

/** What a piece of the migration works with, beside the tool. The caller closes its workspace. */
export function createTestContext(
  store: RedisClient,
  prefix: string,
  { advance = () => {}, signal = new AbortController().signal, claim = dry }: ContextChoice = {},
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
    beforeChange: async () => {},
    signal,
  };
}

/** Works on a source, as the run r, with what the engine works with; closes all of it, the store as well. */
export async function withChosen(
  { env, prefix }: Tool,
  source: string,
  { store, ...choice }: ContextChoice & { store: RedisClient },
  work: (chosen: Chosen, context: MigrationContext) => Promise<void>,
): Promise<void> {
  const chosen = await openChosen({ source, run: 'r', batch: 10, concurrency: 4 }, env);
  const context = createTestContext(store, prefix, choice);
  try {
    await work(chosen, context);
  } finally {
    await chosen.source.close();
    context.workspace.close();
    await closeRedis(store);
  }
}
