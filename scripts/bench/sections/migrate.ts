import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReleasers, type Releasers } from '../../../src/lib/releasers.ts';
import { writeCommands, writeProfiles, writeScattered } from '../migration/inputs.ts';
import { openPostgresSource, type PostgresSource } from '../migration/postgres.ts';
import { migrate as runTool, type Call } from '../migration/programs.ts';
import { pipeCommands } from '../pipe.ts';
import { judged, ratioRow, type Aim, type Row, type Section } from '../report/section.ts';
import { ratio } from '../report/stats.ts';
import { openStore } from '../resources.ts';

const wide = { rows: 2000, padding: 'x'.repeat(128 * 1024) };
const scattered = { count: 100_000, organizations: 1000 };
const peakAim: Aim = { atMost: 250 };

export const migrate: Section = {
  name: 'migrate',
  about: 'profiles from NDJSON and PostgreSQL, beside redis-cli --pipe of the same final keys (--profiles)',
  run: async ({ rounds, profiles, say }) => {
    const releasers = createReleasers();
    try {
      const setting = await openSetting(releasers, say);
      const measured = createMeasurements();
      const commands = join(setting.folder, 'keys.resp');
      await writeCommands(commands, profiles);
      const source = ['--source', await writeProfiles(join(setting.folder, 'profiles'), profiles)];
      const postgres = await openPostgresSource(setting.folder, profiles);
      if (postgres === undefined) say('  left out: PostgreSQL is not installed');
      else releasers.onClose('postgres', postgres.stop);

      // A round is long enough that few are sufficient.
      for (let round = 0; round < Math.min(rounds, 3); round += 1) {
        await measureFiles(setting, measured, commands, source, profiles);
        if (postgres !== undefined) await measurePostgres(setting, measured, postgres);
      }
      return [
        ...rowsOf(measured, profiles),
        ...(await measureWide(setting)),
        await measureScattered(setting),
      ];
    } finally {
      await releasers.close();
    }
  },
};

/** A Redis, a folder, and the tool that writes into the one and reads from the other. */
type Setting = Awaited<ReturnType<typeof openSetting>>;

async function openSetting(releasers: Releasers, say: (line: string) => void) {
  const folder = await mkdtemp(join(tmpdir(), 'pb-bench-migrate-'));
  releasers.onClose('folder', async () => await rm(folder, { recursive: true, force: true }));
  const { url, store, close } = await openStore();
  releasers.onClose('redis', close);
  return {
    folder,
    url,
    store,
    empty: async (): Promise<void> => void (await store.flushall('SYNC')),
    tool: async (...args: string[]): Promise<Call> => {
      const call = await runTool(url, args);
      say(`  ${args.slice(0, 4).join(' ')}: ${call.seconds.toFixed(1)} s, ${call.peakMegabytes} MB`);
      return call;
    },
  };
}

/** What the rounds took: pipes in seconds. */
type Measurements = ReturnType<typeof createMeasurements>;

function createMeasurements() {
  return {
    pipes: [] as number[],
    applies: [] as Call[],
    unchanged: [] as Call[],
    verifies: [] as Call[],
    resumed: [] as Call[],
    postgresPipes: [] as number[],
    postgresApplies: [] as Call[],
  };
}

async function measureFiles(
  { url, store, empty, tool }: Setting,
  { pipes, applies, unchanged, verifies, resumed }: Measurements,
  commands: string,
  source: readonly string[],
  profiles: number,
): Promise<void> {
  await empty();
  pipes.push(await pipeCommands(url, createReadStream(commands, { highWaterMark: 1 << 20 })));
  await empty();
  applies.push(await tool('apply', ...source));
  unchanged.push(await tool('apply', ...source, '--fresh'));
  verifies.push(await tool('verify', ...source));
  await empty();
  resumed.push(
    await resume(url, source, async (run) => {
      while (run.exitCode === null && (await store.dbsize()) < 0.65 * profiles) await sleep(5);
    }),
  );
}

async function measurePostgres(
  { url, empty, tool }: Setting,
  { postgresPipes, postgresApplies }: Measurements,
  postgres: PostgresSource,
): Promise<void> {
  await empty();
  postgresPipes.push(await postgres.pipe(url));
  await empty();
  postgresApplies.push(await tool('apply', '--source', postgres.url, '--mapping', postgres.mapping));
}

function rowsOf(measured: Measurements, profiles: number): Row[] {
  const { pipes, applies, unchanged, verifies, resumed, postgresPipes, postgresApplies } = measured;
  const speeds = (seconds: readonly number[]): number[] => seconds.map((each) => 1 / each);
  const seconds = (calls: readonly Call[]): number[] => calls.map((call) => call.seconds);
  const perSecond = (calls: readonly Call[]): string =>
    `${Math.round(profiles / Math.min(...seconds(calls)) / 1000)}k profiles/s at best`;
  const rows: Row[] = [
    ratioRow(
      'migrate apply, all passes / redis-cli --pipe',
      ratio(speeds(seconds(applies)), speeds(pipes)),
      perSecond(applies),
      { atLeast: 0.6 },
    ),
    ratioRow(
      'migrate apply, nothing has changed / redis-cli --pipe',
      ratio(speeds(seconds(unchanged)), speeds(pipes)),
      perSecond(unchanged),
      { atLeast: 0.35 },
    ),
    ratioRow(
      'migrate verify / migrate apply, time',
      ratio(seconds(verifies), seconds(applies)),
      perSecond(verifies),
      { atMost: 2 },
    ),
    peakRow('migrate apply', applies),
    peakRow('migrate apply, nothing has changed', unchanged),
    peakRow('migrate verify', verifies),
    ratioRow(
      'migrate apply, resumed after a kill at 65 % / in one go, time',
      ratio(seconds(resumed), seconds(applies)),
      `${Math.min(...seconds(resumed)).toFixed(1)} s at best`,
      { atMost: 0.85 },
    ),
  ];
  if (postgresApplies.length === 0) return rows;
  return [
    ...rows,
    ratioRow(
      'migrate apply from PostgreSQL / psql COPY | awk | redis-cli --pipe, time',
      ratio(seconds(postgresApplies), postgresPipes),
      perSecond(postgresApplies),
      { atMost: 1.2 },
    ),
    peakRow('migrate apply from PostgreSQL', postgresApplies),
  ];
}

async function measureWide({ folder, empty, tool }: Setting): Promise<Row[]> {
  await empty();
  const source = ['--source', await writeProfiles(join(folder, 'wide'), wide.rows, wide.padding)];
  return [
    peakRow('migrate apply, rows of 128 kB', [await tool('apply', ...source)]),
    peakRow('migrate verify, rows of 128 kB', [await tool('verify', ...source)]),
  ];
}

async function measureScattered({ folder, empty, tool }: Setting): Promise<Row> {
  const bySorting: number[] = [];
  for (const isSorted of [true, false]) {
    await empty();
    const own = await writeScattered(join(folder, String(isSorted)), { ...scattered, isSorted });
    bySorting.push((await tool('apply', '--source', own)).seconds);
  }
  const [sorted = 0, interleaved = 0] = bySorting;
  return ratioRow(
    'migrate apply, 1,000 organizations interleaved / sorted, time',
    ratio([interleaved], [sorted]),
    `${scattered.count.toLocaleString('en')} profiles`,
    { atMost: 1.5 },
  );
}

/** Kills an apply when `until` resolves, and runs it again. */
async function resume(
  url: string,
  source: readonly string[],
  until: (run: ChildProcess) => Promise<void>,
): Promise<Call> {
  await runTool(url, ['apply', ...source], async (run) => {
    await until(run);
    run.kill('SIGKILL');
  });
  return await runTool(url, ['apply', ...source]);
}

function peakRow(what: string, calls: readonly Call[]): Row {
  const peak = Math.max(...calls.map(({ peakMegabytes }) => peakMegabytes));
  const row = { what: `${what}, peak memory`, result: `${peak} MB`, figures: { peakMegabytes: peak } };
  return judged(row, peak, peakAim);
}
