import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from '../../../test/support/processes.ts';
import { pause, resume } from '../../../test/support/processes.ts';
import type { Action } from '../tools/proxy.ts';
import type { Call } from './clients.ts';
import type { ToolProcess } from '../tool-process.ts';

/** What can be stopped. */
interface Stoppable {
  bridges: readonly Server[];
  redis: Server;
  tool: ToolProcess;
}

/** What is stopped at a step of a switch. */
export interface Stop {
  name: string;
  /** Stops it before the command reaches Redis. The returned promise, if any, resolves when everything runs again. */
  stop: (what: Stoppable) => Promise<{ action: Action; until?: Promise<void> | undefined }>;
  /** Whether the design allows a client to see this instead of success. */
  allows: (call: Call) => boolean;
}

/** Longer than every lease and every deadline of a switch, in ms. */
const long = 6000;

/** The bridge that is stopped; the other one always runs. */
const victim = 0;

const isUnavailable = ({ status }: Call): boolean => status === 503;
/**
 * After a pause, a bridge does not know the outcome of what it forwarded: the connection is closed, or too much time
 * has passed.
 */
const isUnknown = ({ status }: Call): boolean => status === 502 || status === 504;

async function paused(server: Pick<Server, 'pid'>, ms = long): Promise<void> {
  pause(server);
  await sleep(ms).finally(() => resume(server));
}

/** What is stopped, one at a time. */
export const stops: readonly Stop[] = [
  {
    name: 'nothing',
    stop: () => Promise.resolve({ action: 'forward' }),
    allows: () => false,
  },
  {
    name: 'instance paused',
    stop: ({ bridges: [bridge] }) =>
      Promise.resolve({ action: 'forward', until: bridge && paused(bridge) } as const),
    // Only its own requests: the other one goes on.
    allows: (call) => call.bridge === victim && (isUnavailable(call) || isUnknown(call)),
  },
  {
    name: 'instance killed',
    stop: async ({ bridges: [bridge] }) => {
      await bridge?.kill();
      return { action: 'forward' };
    },
    allows: ({ bridge, status }) => bridge === victim && status === 'broken',
  },
  {
    name: 'tool paused',
    stop: ({ tool }) => Promise.resolve({ action: 'forward', until: paused(tool) } as const),
    allows: () => false,
  },
  {
    name: 'tool killed',
    stop: async ({ tool }) => {
      await tool.kill();
      return { action: 'kill' };
    },
    allows: () => false,
  },
  {
    name: 'Redis paused',
    stop: ({ redis }) => Promise.resolve({ action: 'forward', until: paused(redis) } as const),
    allows: isUnavailable,
  },
  {
    name: 'Redis killed',
    stop: async ({ redis }) => {
      await redis.kill();
      const back = async (): Promise<void> => {
        await sleep(1000);
        await redis.restart();
      };
      return { action: 'forward', until: back() };
    },
    allows: isUnavailable,
  },
];
