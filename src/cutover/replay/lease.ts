import type { RedisClient } from '../../redis/connection/client.ts';
import { replayerKey } from '../../redis/keys.ts';
import { script } from '../../redis/connection/script-loader.ts';

const replayerRenew = script<[instance: string, leaseMs: number], number>('cutover/replay/lease/renew');

const replayerRelease = script<[instance: string], number>('cutover/replay/lease/release');

/** How long the lease holds without being renewed, in ms. */
export const leaseMs = 5000;
/**
 * How much earlier the holder considers it ended than Redis does, since clocks do not run at exactly the same speed, in
 * ms.
 */
const margin = 500;

/** The instance that has the lease. */
export async function leaseHolder(store: RedisClient, prefix: string): Promise<string | undefined> {
  return (await store.get(replayerKey(prefix))) ?? undefined;
}

/** The right to replay, which one instance has at a time. */
export type ReplayerLease = NonNullable<Awaited<ReturnType<typeof claimLease>>>;

/** Takes the lease for an instance; undefined while another one has it. */
export async function claimLease(store: RedisClient, prefix: string, instance: string) {
  const key = replayerKey(prefix);
  // Measured from before each request: Redis starts to count later.
  let sentAt = performance.now();
  if ((await store.set(key, instance, 'PX', leaseMs, 'NX')) === null) return undefined;
  let heldUntil = sentAt + leaseMs - margin;
  return {
    /** Whether this instance certainly has it now; to be checked immediately before each request. */
    isHeld: (): boolean => performance.now() < heldUntil,
    /** False if the lease was lost. Rejects if Redis is unavailable: the lease is then valid for as long as before. */
    renew: async (): Promise<boolean> => {
      sentAt = performance.now();
      const isOurs = (await replayerRenew(store, key, instance, leaseMs)) === 1;
      heldUntil = isOurs ? sentAt + leaseMs - margin : 0;
      return isOurs;
    },
    /** Lets another instance take over at once. */
    release: async (): Promise<void> => {
      heldUntil = 0;
      await replayerRelease(store, key, instance);
    },
  };
}
