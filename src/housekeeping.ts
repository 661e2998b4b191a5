import { countLegacyPictures } from './cutover/verdict/pictures.ts';
import { repeat } from './lib/repeat.ts';
import { removeOrphans } from './media/lifecycle.ts';
import { removeAbandonedStage } from './redis/denylist.ts';
import { checkPermissions } from './redis/connection/permissions.ts';
import { sweepOrganizations } from './redis/sweep.ts';
import { auditSwitches } from './cutover/switch/coordinator.ts';
import type { Resources } from './resources.ts';

/** Starts the background work that one process does for all; checks every `interval` ms whether any is due. */
export function startHousekeeping(
  { config, log, releasers, store, media }: Resources,
  interval = 60_000,
): void {
  const { keyPrefix } = config;
  const start = (failure: string, work: (signal: AbortSignal) => Promise<void>): void => {
    let reported: string | undefined;
    const stop = repeat(async (signal) => {
      const reason = await work(signal).then(() => undefined, String);
      if (reason !== undefined && reason !== reported && !signal.aborted) log.warn(failure, { reason });
      reported = reason;
    }, interval);
    releasers.onClose('housekeeping', stop);
  };

  start('orphaned picture files or abandoned denylists could not be removed', async (signal) => {
    const jobs = [
      (base: string) => removeOrphans(store, base, media.remove, signal),
      (base: string) => removeAbandonedStage(store, base),
    ];
    await sweepOrganizations(store, keyPrefix, jobs, signal);
  });
  // Where it is `eval`, no request fails before Redis is restarted.
  start('the permissions in Redis are no longer enough', () => checkPermissions(store, keyPrefix));
  start('switches of the mode could not be recorded in the audit trail', () =>
    auditSwitches(store, keyPrefix),
  );
  start('pictures of the legacy service could not be counted', (signal) =>
    countLegacyPictures(store, keyPrefix, signal),
  );
}
