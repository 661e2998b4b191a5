import { setTimeout as sleep } from 'node:timers/promises';
import type { Action } from './proxy.ts';

/** What can happen while one of a tool's commands waits. */
interface Bystanders {
  /** Another operator runs the same tool, or one that contends with it. */
  rival: () => Promise<void>;
  /** A user takes another name, and somebody else takes the one that becomes free. */
  rename: () => Promise<void>;
}

/** What happens to a tool at its n-th command. */
export interface ToolFault {
  name: string;
  /** What others do before the command goes on. */
  meanwhile?: (bystanders: Bystanders) => Promise<void>;
  action: Action;
}

/** Longer than any lease of any tool, in ms. */
const stall = 16_000;

export const toolFaults: readonly ToolFault[] = [
  { name: 'killed', action: 'kill' },
  { name: 'reply lost', action: 'lose-reply' },
  { name: 'second run beside it', meanwhile: async ({ rival }) => await rival(), action: 'forward' },
  {
    name: 'stalled beyond its lease',
    meanwhile: async ({ rival, rename }) => {
      await sleep(stall);
      await rename();
      await rival();
    },
    action: 'forward',
  },
];
