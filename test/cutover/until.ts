import { setImmediate as turn } from 'node:timers/promises';

/** Waits until a condition holds, looking at it as often as the event loop turns. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn();
}
