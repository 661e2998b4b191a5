import { storeTime, type RedisClient } from '../../redis/connection/client.ts';

/** This process' own clock, in ms: one that goes on where that of its machine is set. */
const ownTime = (): number => Math.round(performance.timeOrigin + performance.now());

/**
 * The clock of Redis, read without asking: that of this process, corrected by how far it was behind when last adjusted.
 * So instances and tools whose clocks differ agree on the time, and on when a day ends.
 */
export function createStoreClock(store: RedisClient) {
  let behind = 0;
  return {
    now: (): number => ownTime() + behind,
    /** Compares the clocks, and corrects `now`; returns by how many ms it was behind. */
    adjust: async (): Promise<number> => {
      const asked = ownTime();
      const time = await storeTime(store);
      const wasBehind = behind;
      behind = Math.round(time - (asked + ownTime()) / 2);
      return behind - wasBehind;
    },
  };
}
