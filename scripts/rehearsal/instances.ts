import { setTimeout as sleep } from 'node:timers/promises';
import { startBridgeProcess } from '../drills/processes.ts';
import type { Random } from '../drills/random.ts';

/** A bridge in a separate process. */
interface Instance {
  name: string;
  url: string;
  isUp: () => boolean;
  /** How often it was killed: a request during which this rises was on a connection to a killed instance. */
  kills: () => number;
}

/** The bridges behind one address, as a load balancer sees them. */
export type Instances = Awaited<ReturnType<typeof startInstances>>;

export interface InstancesOptions {
  environment: Record<string, string>;
  /** The arguments with which `node` runs a bridge. */
  program: readonly string[];
  count: number;
  /** The time between a restart and the next kill, in ms: least and greatest. */
  pause: readonly [number, number];
  /** Called with one line for each kill and restart. */
  say: (line: string) => void;
}

export async function startInstances(options: InstancesOptions) {
  const { environment, program, count, pause, say } = options;
  const servers = await Promise.all(
    Array.from({ length: count }, () => startBridgeProcess(environment, program)),
  );
  const states = servers.map((server, n) => ({ name: `bridge ${n + 1}`, server, isUp: true, kills: 0 }));
  const all = states.map((state): Instance => {
    const { name, server } = state;
    return { name, url: server.url, isUp: () => state.isUp, kills: () => state.kills };
  });
  const stopping = new AbortController();
  let killing = Promise.resolve();
  let killedAt = -Infinity;

  async function killUntilStopped(random: Random, onKill: (instance: number) => void): Promise<void> {
    for (;;) {
      await sleep(random.between(...pause), undefined, { signal: stopping.signal });
      const state = random.pick(states);
      state.isUp = false;
      state.kills += 1;
      onKill(states.indexOf(state));
      say(`${state.name} is killed`);
      await state.server.kill();
      killedAt = performance.now();
      await sleep(random.between(0, 500), undefined, { signal: stopping.signal });
      await state.server.restart();
      state.isUp = true;
      say(`${state.name} has started again`);
    }
  }

  return {
    all,
    /** One that is running. */
    pick: (random: Random): Instance => random.pick(all.filter((one) => one.isUp())),
    /** How long ago the last kill was, in ms. */
    calmFor: (): number => performance.now() - killedAt,
    /** Kills one or the other at random moments from now on, and starts it again; never both at once. */
    startKilling: (random: Random, onKill: (instance: number) => void): void => {
      killing = killUntilStopped(random, onKill).catch((error: unknown) => {
        if (!stopping.signal.aborted) throw error;
      });
    },
    close: async (): Promise<void> => {
      stopping.abort();
      await killing;
      for (const { server } of states) await server.stop();
    },
  };
}
