import { setTimeout as sleep } from 'node:timers/promises';
import { MigrationError } from './issues.ts';
import type { Organization, Organizations } from './organizations.ts';

/** How long names may be held by another operation before a migration gives up, in ms. */
export const indexTimeout = 60_000;
const pause = 50;

/** Repeats a call until the name index that it was made for is the one in force, and not being rebuilt. */
export async function withCurrentIndex<Reply extends readonly [string, ...unknown[]]>(
  { organizations, organization }: { organizations: Organizations; organization: Organization },
  call: () => Promise<Reply>,
): Promise<Exclude<Reply, readonly ['stale'] | readonly ['frozen']>> {
  for (const deadline = Date.now() + indexTimeout; ;) {
    const reply = await call();
    if (reply[0] !== 'stale' && reply[0] !== 'frozen') {
      return reply as Exclude<Reply, readonly ['stale'] | readonly ['frozen']>;
    }
    await waitForNames(deadline, organization.id);
    await organizations.refresh(organization.id);
  }
}

/** Waits a moment for names that another operation holds; past the deadline (ms) it gives up with the remedy. */
export async function waitForNames(deadline: number, organizationId: string): Promise<void> {
  if (Date.now() > deadline) {
    throw new MigrationError(
      `names of organization ${JSON.stringify(organizationId)} are held by another operation (admin org set, or a denylist overwrite): wait until that has ended, then run the same command again`,
    );
  }
  await sleep(pause);
}
