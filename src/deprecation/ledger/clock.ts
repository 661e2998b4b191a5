import { storeTime, type RedisClient } from '../../redis/connection/client.ts';

/**
 * The clock of Redis, read without asking: that of this machine, corrected by how far it was behind at the last look. So
 * instances and tools whose clocks differ agree on the time, and on when a day ends.
 */
export function createStoreClock(store: RedisClient) {
  let behind = 0;
  return {
    now: (): number => Date.now() + behind,
    /** Compares the clocks; returns by how many ms `now` was behind. */
    look: async (): Promise<number> => {
      const asked = Date.now();
      const time = await storeTime(store);
      const wasBehind = behind;
      behind = Math.round(time - (asked + Date.now()) / 2);
      return behind - wasBehind;
    },
  };
}
