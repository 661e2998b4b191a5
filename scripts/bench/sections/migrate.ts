import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { writeCommands, writeProfiles, writeScattered } from '../migration/inputs.ts';
import { openPostgresSource } from '../migration/postgres.ts';
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
    const folder = await mkdtemp(join(tmpdir(), 'pb-bench-migrate-'));
    releasers.onClose('folder', async () => await rm(folder, { recursive: true, force: true }));
    try {
      const { url, store, close } = await openStore();
      releasers.onClose('redis', close);
      const empty = async (): Promise<void> => void (await store.flushall('SYNC'));
      const tool = async (...args: string[]): Promise<Call> => {
        const call = await runTool(url, args);
        say(`  ${args.slice(0, 4).join(' ')}: ${call.seconds.toFixed(1)} s, ${call.peakMegabytes} MB`);
        return call;
      };
      const commands = join(folder, 'keys.resp');
      await writeCommands(commands, profiles);
      const source = ['--source', await writeProfiles(join(folder, 'profiles'), profiles)];

      const postgres = await openPostgresSource(folder, profiles);
      if (postgres === undefined) say('  left out: PostgreSQL is not installed');
      else releasers.onClose('postgres', postgres.stop);

      const pipes: number[] = [];
      const applies: Call[] = [];
      const unchanged: Call[] = [];
      const verifies: Call[] = [];
      const resumed: Call[] = [];
      const postgresPipes: number[] = [];
      const postgresApplies: Call[] = [];
      // A round is long enough that few are sufficient.
      for (let round = 0; round < Math.min(rounds, 3); round += 1) {
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
        if (postgres === undefined) continue;
        await empty();
        postgresPipes.push(await postgres.pipe(url));
        await empty();
        postgresApplies.push(await tool('apply', '--source', postgres.url, '--mapping', postgres.mapping));
      }
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

      if (postgresApplies.length > 0)
        rows.push(
          ratioRow(
            'migrate apply from PostgreSQL / psql COPY | awk | redis-cli --pipe, time',
            ratio(seconds(postgresApplies), postgresPipes),
            perSecond(postgresApplies),
            { atMost: 1.2 },
          ),
          peakRow('migrate apply from PostgreSQL', postgresApplies),
        );

      await empty();
      const wideSource = ['--source', await writeProfiles(join(folder, 'wide'), wide.rows, wide.padding)];
      rows.push(peakRow('migrate apply, rows of 128 kB', [await tool('apply', ...wideSource)]));
      rows.push(peakRow('migrate verify, rows of 128 kB', [await tool('verify', ...wideSource)]));

      const bySorting: number[] = [];
      for (const isSorted of [true, false]) {
        await empty();
        const own = await writeScattered(join(folder, String(isSorted)), { ...scattered, isSorted });
        bySorting.push((await tool('apply', '--source', own)).seconds);
      }
      const [sorted = 0, interleaved = 0] = bySorting;
      rows.push(
        ratioRow(
          'migrate apply, 1,000 organizations interleaved / sorted, time',
          ratio([interleaved], [sorted]),
          `${scattered.count.toLocaleString('en')} profiles`,
          { atMost: 1.5 },
        ),
      );
      return rows;
    } finally {
      await releasers.close();
    }
  },
};

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
