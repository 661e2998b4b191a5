import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a condition holds, looking at it every few ms: what is waited for needs the processor, too. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(5);
}
