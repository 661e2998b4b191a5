import { repeat } from '../lib/repeat.ts';
import type { RedisClient } from '../redis/connection/client.ts';
import { compareAndSwap } from '../redis/compare-and-swap.ts';

/** How long a lease holds without being renewed, in ms. */
export const leaseMs = 5000;
/** How much earlier its holder considers it ended than Redis does, since clocks differ in speed, in ms. */
const margin = 500;

/** A key in Redis that one holder has at a time, and renews. */
export type Lease = NonNullable<Awaited<ReturnType<typeof claimLease>>>;

/** Takes a lease; undefined while another holder has it. */
export async function claimLease(store: RedisClient, key: string, holder: string) {
  const sentAt = performance.now();
  if ((await compareAndSwap(store, key, '', holder, leaseMs)) !== '') return undefined;
  // By the monotonic clock; Redis starts to count later.
  let heldUntil = sentAt + leaseMs - margin;
  const stopRenewing = repeat(async () => {
    const at = performance.now();
    try {
      const isOurs = (await compareAndSwap(store, key, holder, holder, leaseMs)) === holder;
      heldUntil = isOurs ? at + leaseMs - margin : 0;
    } catch {
      // While Redis is away, the lease holds as long as it did before.
    }
  }, leaseMs / 5);
  return {
    /** Whether it is certainly held now; to be checked immediately before each request. */
    isHeld: (): boolean => performance.now() < heldUntil,
    /** Stops renewing it, and lets another holder take it at once. */
    release: async (): Promise<void> => {
      await stopRenewing();
      heldUntil = 0;
      await compareAndSwap(store, key, holder, '', 0);
    },
  };
}
