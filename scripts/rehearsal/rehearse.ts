import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Mode } from '../../src/cutover/modes.ts';
import { createReleasers } from '../../src/lib/releasers.ts';
import { counted } from '../../src/lib/numbers.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { runTool, type Ran } from '../../test/support/admin.ts';
import { openTestStore } from '../../test/support/store.ts';
import { startDurableRedis } from '../drills/processes.ts';
import { createRandom } from '../drills/random.ts';
import { runMigrateTool } from '../drills/run-migrate.ts';
import { startClients, type Phase } from './clients.ts';
import { startInstances } from './instances.ts';
import { startLegacyService } from './legacy-service.ts';
import { createSides } from './sides.ts';
import { steps, type Stage } from './steps.ts';

export interface Plan {
  users: number;
  /** Requests per second. */
  rate: number;
  /** How long clients call in each mode, in seconds. */
  seconds: number;
  /** Least and greatest number of seconds between a restart and the next kill. */
  pause: readonly [number, number];
  seed: number;
  /** Told of each event, with the seconds since the beginning. */
  say: (seconds: number, line: string) => void;
}

export interface Rehearsed {
  phases: Phase[];
  /** How often an instance was killed. */
  kills: number;
  violations: string[];
}

const keyPrefix = 'pb:';
/** Violations in the timeline; the report counts all. */
const mostShown = 20;
const publicUrl = 'https://bridge.example.com';

/**
 * Takes over from a stand-in for the legacy service with two bridges that are killed at random moments, step by step
 * as an operator does, while clients go on calling; and checks that nobody notices.
 */
export async function rehearse(plan: Plan): Promise<Rehearsed> {
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
      REPLAY_SECRET: 'a secret of the rehearsal, which nobody keeps',
      MEDIA_URL: `file:${join(folder, 'media')}`,
      PUBLIC_BASE_URL: publicUrl,
    };
    const store = await openTestStore(redis.url);
    releasers.onClose('connection', () => closeRedis(store));

    const run = async (command: string): Promise<Ran> => {
      const [tool, ...args] = command.split(' ');
      const env = { ...environment, DATA_DIR: folder };
      const ran = await (tool === 'admin' ? runTool(env, args) : runMigrateTool(env, args));
      const text = (ran.code === 0 ? ran.out : ran.err).trim();
      say(`$ ${command.replace(`${folder}/`, '')}`);
      say(`  ${text.split('\n').at(-1) ?? ''}`);
      return ran;
    };
    const dump = () => legacy.dump(join(folder, 'legacy'));
    const early = 'organizations,api-keys';
    await run(`migrate apply --source ${(await dump()).folder} --entities ${early}`);

    const random = createRandom(plan.seed);
    const instances = await startInstances({
      environment,
      count: 2,
      pause: [1000 * plan.pause[0], 1000 * plan.pause[1]],
      say,
    });
    releasers.onClose('bridges', instances.close);
    say(`two bridges, ${counted(plan.users, 'player')}, ${plan.rate} requests/s; the mode is shadow`);

    const clients = startClients({ legacy, instances, random, rate: plan.rate, onViolation: violation });
    let mode: Mode = 'shadow';
    const begin = (next: Mode): void => {
      mode = next;
      clients.begin(next);
    };
    begin(mode);
    instances.startKilling(createRandom(plan.seed + 1));
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
    };
    try {
      for (const step of steps) await step(stage);
    } finally {
      await clients.stop();
    }
    const phases = await clients.stop();
    const kills = instances.all.reduce((sum, one) => sum + one.kills(), 0);
    return { phases, kills, violations };
  } finally {
    await releasers.close();
  }
}
