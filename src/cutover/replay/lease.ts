import type { RedisClient } from '../../redis/connection/client.ts';
import { replayerKey } from '../../redis/keys.ts';
import { script } from '../../redis/connection/script-loader.ts';

const replayerRenew = script<[instance: string, leaseMs: number], number>('cutover/replay/lease/renew');

const replayerRelease = script<[instance: string], number>('cutover/replay/lease/release');

/** How long the lease holds without being renewed, in ms. */
export const leaseMs = 5000;
/** By how much the holder takes it to end earlier than Redis does: clocks do not run at exactly the same speed, in ms. */
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
  // From before each request: Redis begins to count later.
  let sentAt = performance.now();
  if ((await store.set(key, instance, 'PX', leaseMs, 'NX')) === null) return undefined;
  let heldUntil = sentAt + leaseMs - margin;
  return {
    /** Whether this instance certainly has it now: to be asked immediately before each request. */
    isHeld: (): boolean => performance.now() < heldUntil,
    /** False where the lease was lost. Rejects where Redis is away: the lease then holds as long as it did before. */
    renew: async (): Promise<boolean> => {
      sentAt = performance.now();
      const isOurs = (await replayerRenew(store, key, instance, leaseMs)) === 1;
      heldUntil = isOurs ? sentAt + leaseMs - margin : 0;
      return isOurs;
    },
    /** Lets another instance begin at once. */
    release: async (): Promise<void> => {
      heldUntil = 0;
      await replayerRelease(store, key, instance);
    },
  };
}
