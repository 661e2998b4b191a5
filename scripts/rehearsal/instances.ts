import { setTimeout as sleep } from 'node:timers/promises';
import { startBridgeProcess } from '../../test/support/processes.ts';
import type { Random } from '../drills/random.ts';

/** The bridges behind one address, as a load balancer sees them. */
export type Instances = Awaited<ReturnType<typeof startInstances>>;

export interface InstancesOptions {
  environment: Record<string, string>;
  /** The arguments with which `node` runs a bridge. */
  program: readonly string[];
  count: number;
  /** The time between a restart and the next kill, in ms: least and greatest. */
  pause: readonly [number, number];
  /** How often they are killed at most, all in all. */
  mostKills: number;
  /** Called with one line for each kill and restart. */
  say: (line: string) => void;
}

export async function startInstances(options: InstancesOptions) {
  const { environment, program, count, pause, mostKills, say } = options;
  const servers = await Promise.all(
    Array.from({ length: count }, () => startBridgeProcess(environment, program)),
  );
  const all = servers.map((server, n) => ({
    name: `bridge ${n + 1}`,
    server,
    isUp: true,
    /** How often it was killed: a request during which this rises was on a connection to a killed instance. */
    kills: 0,
  }));
  const stopping = new AbortController();
  let killing = Promise.resolve();
  let killedAt = -Infinity;

  async function killUntilStopped(random: Random, onKill: (instance: number) => void): Promise<void> {
    for (let kills = 0; kills < mostKills; kills++) {
      await sleep(random.between(...pause), undefined, { signal: stopping.signal });
      const instance = random.pick(all);
      instance.isUp = false;
      instance.kills += 1;
      onKill(all.indexOf(instance));
      say(`${instance.name} is killed`);
      await instance.server.kill();
      killedAt = performance.now();
      await sleep(random.between(0, 500), undefined, { signal: stopping.signal });
      await instance.server.restart();
      instance.isUp = true;
      say(`${instance.name} has started again`);
    }
  }

  return {
    all,
    /** One that is running. */
    pick: (random: Random) => random.pick(all.filter(({ isUp }) => isUp)),
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
      for (const { server } of all) await server.stop();
    },
  };
}
