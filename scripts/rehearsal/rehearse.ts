import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Mode } from '../../src/cutover/modes.ts';
import { createReleasers } from '../../src/lib/releasers.ts';
import { counted } from '../../src/lib/numbers.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import type { Ran } from '../../test/support/tools/admin.ts';
import { openTestStore } from '../../test/support/store.ts';
import { startDurableRedis } from '../../test/support/processes.ts';
import { createRandom } from '../drills/random.ts';
import { startClients } from './clients.ts';
import { startInstances } from './instances.ts';
import { startLegacyService } from './legacy-service.ts';
import type { Phase } from './phases.ts';
import { startTool } from '../drills/tool-process.ts';
import { createSides } from './sides.ts';
import { steps, type Stage } from './steps.ts';

export interface Plan {
  /** The arguments with which `node` runs `profile-bridge`. */
  program: readonly string[];
  users: number;
  /** Requests per second. */
  rate: number;
  /** How long clients call at least before each step, in seconds. */
  seconds: number;
  /** Least and greatest number of seconds between a restart and the next kill. */
  pause: readonly [number, number];
  /** LEGACY_TIMEOUT, in seconds. What a killed bridge has forwarded can take effect for three times as long. */
  legacyTimeout: number;
  /** How often each bridge is killed in each mode at least. */
  kills: number;
  /** How often bridges are killed at most, all in all. */
  mostKills: number;
  seed: number;
  /** Called with each event and the seconds since the start. */
  say: (seconds: number, line: string) => void;
}

export interface Rehearsed {
  phases: readonly Phase[];
  violations: string[];
}

/** What a mode means, for the timeline. */
const inForce: Readonly<Record<Mode, string>> = {
  shadow: 'the legacy service answers, and its responses are compared with what Redis has',
  mirror: 'the legacy service answers, and Redis receives every accepted change',
  reverse: 'the bridges answer, and replay every accepted change to the legacy service',
  native: 'the bridges answer alone',
};

const keyPrefix = 'pb:';
/** Violations in the timeline; the report counts all. */
const mostShown = 20;
const publicUrl = 'https://bridge.example.com';

/**
 * Takes over from a stand-in for the legacy service with two bridges that are killed at random moments, step by step as
 * an operator would, while clients keep calling; and checks that no client notices.
 */
export async function rehearse(plan: Plan): Promise<Rehearsed> {
  const { legacyTimeout } = plan;
  const startedAt = performance.now();
  const say = (line: string): void => plan.say((performance.now() - startedAt) / 1000, line);
  const violations: string[] = [];
  const violation = (text: string): void => {
    violations.push(text);
    if (violations.length <= mostShown) say(`VIOLATION: ${text}`);
  };
  const releasers = createReleasers();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'rehearsal-'));
    releasers.onClose('folder', () => rm(folder, { recursive: true, force: true }));
    const legacy = await startLegacyService(plan.users);
    releasers.onClose('legacy service', legacy.close);
    const redis = await startDurableRedis();
    releasers.onClose('Redis', redis.stop);
    const environment = {
      REDIS_URL: redis.url,
      KEY_PREFIX: keyPrefix,
      LEGACY_BASE_URL: legacy.url,
      LEGACY_TIMEOUT: String(legacyTimeout),
      REPLAY_SECRET: 'a secret of the rehearsal, which nobody keeps',
      MEDIA_URL: `file:${join(folder, 'media')}`,
      PUBLIC_BASE_URL: publicUrl,
    };
    const store = await openTestStore(redis.url);
    releasers.onClose('connection', () => closeRedis(store));

    const run = async (command: string): Promise<Ran> => {
      say(`$ profile-bridge ${command.replace(`${folder}/`, '')}`);
      const env = { ...environment, DATA_DIR: folder };
      const ran = await startTool(plan.program, command.split(' '), env).ended;
      const text = (ran.code === 0 ? ran.out : ran.err).trim();
      say(`  ${text.split('\n').at(-1) ?? ''}`);
      if (ran.code !== 0 && ran.code !== 1) violation(`${command} ended with ${ran.code}: ${text}`);
      return ran;
    };
    const dump = () => legacy.dump(join(folder, 'legacy'));
    const early = 'organizations,api-keys';
    await run(`migrate apply --source ${(await dump()).folder} --entities ${early}`);

    const random = createRandom(plan.seed);
    const instances = await startInstances({
      environment,
      program: [...plan.program, 'serve'],
      count: 2,
      pause: [1000 * plan.pause[0], 1000 * plan.pause[1]],
      mostKills: plan.mostKills,
      say,
    });
    releasers.onClose('bridges', instances.close);
    const [least, greatest] = plan.pause;
    say(
      `${counted(plan.users, 'player')} make ${plan.rate} requests/s through two bridges; every ${least} to ${greatest} s one of these is killed (kill -9) and started again; LEGACY_TIMEOUT is ${legacyTimeout} s`,
    );

    const clients = startClients({ legacy, instances, random, rate: plan.rate, onViolation: violation });
    let mode: Mode = 'shadow';
    const begin = (next: Mode): void => {
      mode = next;
      clients.phases.begin(next);
      say(`-- ${next}: ${inForce[next]}`);
    };
    begin(mode);
    instances.startKilling(createRandom(plan.seed + 1), (instance) => {
      const { kills } = clients.phases.current();
      kills[instance] = (kills[instance] ?? 0) + 1;
    });
    const sides = createSides({ store, keyPrefix, legacy, clients, publicUrl });
    const stage: Stage = {
      run,
      dump,
      begin,
      sides,
      mode: () => mode,
      say,
      violation,
      dwell: 1000 * plan.seconds,
      killedOften: async () => {
        const isKilledOften = (_: unknown, n: number): boolean =>
          killsIn(clients.phases.all, mode, n) >= plan.kills;
        while (!instances.all.every(isKilledOften)) await sleep(100);
      },
      kills: () => instances.all.reduce((sum, { kills }) => sum + kills, 0),
      settled: async () => {
        const left = () => 3 * legacyTimeout - instances.calmFor() / 1000;
        if (left() > 0)
          say(`changes of the killed bridge may take effect for ${left().toFixed(0)} s more: waiting`);
        while (left() > 0) await sleep(100);
      },
    };
    try {
      for (const step of steps) await step(stage);
    } finally {
      await clients.stop();
    }
    return { phases: clients.phases.all, violations };
  } finally {
    await releasers.close();
  }
}

/** How often an instance was killed in a mode. */
function killsIn(phases: readonly Phase[], mode: Mode, instance: number): number {
  return phases.reduce((sum, { name, kills }) => sum + (name === mode ? (kills[instance] ?? 0) : 0), 0);
}
