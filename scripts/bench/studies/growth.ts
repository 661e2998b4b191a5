import { Readable } from 'node:stream';
import { Command } from 'commander';
import { encodeReference } from '../../../src/domain/profile.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { closeRedis, connectRedis } from '../../../src/redis/connection/connect.ts';
import { setObject } from '../../../src/redis/operator/profile-data.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { usedMemory } from '../resources.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { users } from '../load/load.ts';
import { wholeNumber } from '../../../src/cli/command-line.ts';
import { print, runTool } from '../../program.ts';
import { inBlocks, pipeCommands, profileCommands } from '../pipe.ts';
import { avatar, avatarUrl, baseOf, createPlayerKey, userId } from '../load/seed.ts';
import { getProfile, setAvatar } from '../load/workloads.ts';
import { residentMiB } from '../../../test/support/run/process-usage.ts';
import { serveBridge, type Served } from '../servers/serve.ts';
import { compare, speed } from '../report/compare.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';

const program = new Command('npx tsx scripts/bench/studies/growth.ts')
  .description(
    'Compare the cost of a request with few and with many profiles, by two bridges, each on a Redis of its own. Run "npm run build" first.',
  )
  .argument('[many]', 'number of profiles of one bridge', wholeNumber(1), 3_000_000)
  .argument('[few]', 'number of profiles of the other one', wholeNumber(1), 3000)
  .argument('[rounds]', 'measure both this many times, in turn', wholeNumber(1), 5)
  .argument('[seconds]', 'length of one measurement', wholeNumber(1), 2)
  .action(study);
const organization = 'bridge';

const releasers = createReleasers();

async function study(many: number, few: number, rounds: number, seconds: number): Promise<void> {
  try {
    const [memoryFew] = await loaded([organization], few);
    const [memoryMany, urlMany] = await loaded([organization], many);
    print(
      `memory per profile: ${memoryFew} bytes in an organization of ${few}, ${memoryMany} in one of ${many}`,
    );
    if (many >= few * 1000) {
      const [memorySpread] = await loaded(numbered(1000), few);
      print(`memory per profile: ${memorySpread} bytes in 1000 organizations of ${few} each`);
    }
    const [, urlFew] = await loaded([organization], few);
    const bridges = { few: await opened(urlFew), many: await opened(urlMany) };
    print(
      `ready after: ${Math.round(bridges.few.readyMs)} ms with ${few} profiles, ` +
        `${Math.round(bridges.many.readyMs)} ms with ${many}`,
    );

    for (const work of [getProfile(organization), setAvatar(organization)]) {
      const measured = await compare(
        { rounds, seconds },
        { few: { server: bridges.few, work }, many: { server: bridges.many, work } },
      );
      const [{ median, min, max }, rates] = speed(measured.many, measured.few);
      print(
        `${work.method} with ${many} profiles, of ${few}: ${median.toFixed(2)} ` +
          `(${min.toFixed(2)}..${max.toFixed(2)}), ${rates}`,
      );
    }
    print(
      `resident under load: ${residentMiB(bridges.few.pid)} MiB with ${few} profiles, ` +
        `${residentMiB(bridges.many.pid)} MiB with ${many}`,
    );
  } finally {
    await releasers.close();
  }
}

/** A Redis with so many profiles of each organization; the bytes that each takes, and the address. */
async function loaded(
  organizations: readonly string[],
  profilesEach: number,
): Promise<[bytes: number, url: string]> {
  const redis = await startRedis();
  releasers.onClose('redis', redis.stop);
  const store = await connectRedis(redis.url);
  const before = await usedMemory(store);
  const commands = function* (): Generator<string, void> {
    for (const one of organizations) yield* profileCommands(one, profilesEach);
  };
  const seconds = await pipeCommands(redis.url, Readable.from(inBlocks(commands())));
  const profiles = profilesEach * organizations.length;
  const bytes = ((await usedMemory(store)) - before) / profiles;
  print(`${profiles} profiles in ${organizations.length} organization(s): loaded in ${seconds.toFixed(1)} s`);
  if (organizations.length === 1) await addCallers(store, profilesEach);
  await closeRedis(store);
  return [Math.round(bytes), redis.url];
}

/** Keys for users spread evenly over all. */
async function addCallers(store: RedisClient, profiles: number): Promise<void> {
  const base = baseOf(organization);
  await saveSettings(store, 'pb:', organization, defaultSettings);
  await setObject(store, base, encodeReference(avatar), avatarUrl);
  await Promise.all(
    Array.from({ length: users }, (_, n) =>
      createPlayerKey(store, base, n, userId(Math.floor((n * profiles) / users))),
    ),
  );
}

/** A bridge, and how long it took to answer that it is ready. */
async function opened(url: string): Promise<Served & { readyMs: number }> {
  const begun = performance.now();
  const bridge = await serveBridge(url);
  releasers.onClose('bridge', bridge.stop);
  while ((await fetch(`${bridge.url}/readyz`)).status !== 200);
  return { ...bridge, readyMs: performance.now() - begun };
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `org-${n}`);
}

await runTool(program);
