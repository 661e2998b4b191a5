import { setTimeout as sleep } from 'node:timers/promises';
import type { Script } from '../../redis/connection/script-loader.ts';
import type { MigrationContext } from '../context/context.ts';
import { MigrationError } from '../errors.ts';
import { inBatches } from '../../lib/collections/batches.ts';
import type { Organization } from '../context/organizations.ts';
import type { RowArguments } from './scripts.ts';

/** How long names may be held by another operation before a migration gives up, in ms. */
const indexTimeout = 60_000;
const pause = 50;

/**
 * Runs a script that writes, on rows of an organization. Repeats the call until the name index that the rows were made
 * for is the one in force, and no other operation holds their names.
 */
export async function withCurrentIndex<Rest extends unknown[], Reply extends readonly [string, ...unknown[]]>(
  context: MigrationContext,
  organization: Organization,
  run: Script<[...RowArguments, ...Rest], Reply>,
  makeRows: () => readonly string[][],
  ...rest: Rest
): Promise<Exclude<Reply, readonly ['frozen']>> {
  const { store, organizations, epoch, claim, snapshotAt = '', marksFrom } = context;
  for (const deadline = performance.now() + indexTimeout; ;) {
    const { base, index } = organization;
    const rows = JSON.stringify(makeRows());
    const reply = await run(store, base, epoch, index, claim, rows, snapshotAt, marksFrom, ...rest);
    if (reply[0] !== 'frozen') return reply as Exclude<Reply, readonly ['frozen']>;
    if (performance.now() > deadline) {
      throw new MigrationError(
        `names of organization ${JSON.stringify(organization.id)} are held by another operation (admin org set, or a denylist overwrite): wait until that has ended, then run the same command again`,
      );
    }
    await sleep(pause);
    await organizations.refresh(organization.id);
  }
}

/** Throws if the name index of the latest lookup is not that of the first one. */
export function requireSameIndex({ id, index, firstIndex }: Organization): void {
  if (index === firstIndex) return;
  throw new MigrationError(
    `names of organization ${JSON.stringify(id)} are compared in another way than when this began (admin org set): run the same command again`,
  );
}

/**
 * Looks the organizations up again, and rejects if the name index of one has changed: what was read by name before would
 * be incomplete, since a rebuild moves the names and removes the old index.
 */
export async function recheckIndexes(
  { organizations }: Pick<MigrationContext, 'organizations'>,
  among: Iterable<Organization>,
): Promise<void> {
  for (const some of inBatches(among, { size: 1000 }))
    for (const now of await Promise.all(some.map(async ({ id }) => await organizations.refresh(id))))
      requireSameIndex(now);
}
