import { setTimeout as sleep } from 'node:timers/promises';
import type { Script } from '../../redis/connection/script-loader.ts';
import type { MigrationContext } from './context.ts';
import { MigrationError } from '../errors.ts';
import { inBatches } from '../../lib/collections/batches.ts';
import type { Organization } from './organizations.ts';
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

/** Throws if the organization's names were compared in another way when it was first looked up, as far as is known. */
export function requireFirstIndex({ id, index, firstIndex }: Organization): void {
  if (index === firstIndex) return;
  throw new MigrationError(
    `names of organization ${JSON.stringify(id)} are compared in another way than when this began (admin org set): run the same command again`,
  );
}

/**
 * Rejects if that is so now. What was read by names of the index before is incomplete then: a rebuild moves them, and
 * removes the old index.
 */
export async function requireFirstIndexes(
  { organizations }: Pick<MigrationContext, 'organizations'>,
  among: Iterable<Organization>,
): Promise<void> {
  for (const some of inBatches(among, { size: 1000 }))
    for (const now of await Promise.all(some.map(async ({ id }) => await organizations.refresh(id))))
      requireFirstIndex(now);
}
