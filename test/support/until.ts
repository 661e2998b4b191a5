import { setTimeout as sleep } from 'node:timers/promises';

/** Reads every few ms until the result is truthy, and returns it; for what has no event to wait for. */
export async function until<Value>(read: () => Value | Promise<Value>): Promise<NonNullable<Value>> {
  for (;;) {
    const value = await read();
    if (value) return value;
    await sleep(5);
  }
}
