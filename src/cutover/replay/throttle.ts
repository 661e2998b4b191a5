import type { Log } from '../../log.ts';
import { delayAfter, maxRefusedKeys } from './rules.ts';

/** Limits that all organizations of a replay share: how much is sent at a time, and whether anything is sent at all. */
export type Throttle = ReturnType<typeof createThrottle>;

/** Requests in progress. Each may have a picture in memory. */
const maxRequests = 16;

/** Pauses without an answer between them after which another instance is given a chance: half a minute. */
const maxPauses = 6;

/** `now` is a monotonic clock, in ms. `onPause` is called at each pause with the reason, and when none holds any more. */
export function createThrottle(log: Log, now: () => number, onPause: (reason: string | undefined) => void) {
  const refusedKeys = new Set<string>();
  const underWay = new Set<Promise<void>>();
  let closedUntil = 0;
  let pauses = 0;
  let because: string | undefined;
  /** Whether a reason may be shown to the operator. */
  let isShown = false;

  /**
   * Pauses sending, each time for longer until the legacy service has answered. `isOwn`: the reason is this instance, so
   * another one is given a chance at once.
   */
  function pause(reason: string, isOwn = false): void {
    // Requests in progress at the same time fail together: that is one pause.
    if (now() < closedUntil) return;
    pauses = Math.max(pauses + 1, isOwn ? maxPauses : 0);
    closedUntil = now() + delayAfter(pauses);
    if (because !== reason) log.warn('the replay to the legacy service is paused', { reason });
    because = reason;
    isShown = true;
    onPause(reason);
  }

  return {
    /** How many more requests may be started now. */
    free: (): number => {
      if (now() < closedUntil) return 0;
      // After a pause, one request tests whether it is over.
      return because === undefined ? maxRequests - underWay.size : Math.max(0, 1 - underWay.size);
    },
    /** Counts a request until its end; it must not reject. */
    count: (request: Promise<void>): void => {
      underWay.add(request);
      void request.finally(() => underWay.delete(request));
    },
    /** Waits for the requests in progress. */
    untilSettled: async (): Promise<void> => {
      while (underWay.size > 0) await Promise.all(underWay);
    },
    pause,
    /** Begins to replay after another instance, which may have left its reason for a pause. */
    takeOver: (): void => {
      isShown = true;
    },
    /** Whether so many pauses in a row have been made that another instance should try. */
    isStuck: (): boolean => pauses >= maxPauses && now() < closedUntil,
    /** The legacy service has answered as expected, which removes the reason for a pause. */
    noteAnswer: (): void => {
      refusedKeys.clear();
      pauses = 0;
      if (because !== undefined) log.info('the replay to the legacy service continues');
      because = undefined;
      if (isShown) onPause(undefined);
      isShown = false;
    },
    /** The legacy service has refused a key, of this public id. */
    noteRefusal: (keyId: string, organizationId: string): void => {
      refusedKeys.add(`${keyId} of ${organizationId}`);
      if (refusedKeys.size < maxRefusedKeys) return;
      const some = [...refusedKeys].slice(0, maxRefusedKeys).join(', ');
      pause(
        `the legacy service has refused ${maxRefusedKeys} different API keys in a row (${some}): have it accept them (one made by admin key create is unknown there), or check LEGACY_BASE_URL`,
      );
    },
  };
}
