import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { Command } from 'commander';
import { table } from '../../src/lib/system/terminal.ts';
import { wholeNumber } from '../../src/cli/command-line.ts';
import { notesAndExamples, print, runTool, say } from '../program.ts';
import { openResources, type Plan } from './resources.ts';
import { generator } from './load/load.ts';
import type { Row, Section } from './report/section.ts';
import { cutover } from './sections/cutover.ts';
import { get } from './sections/get.ts';
import { lists } from './sections/lists.ts';
import { memory } from './sections/memory.ts';
import { migrate } from './sections/migrate.ts';
import { names } from './sections/names.ts';
import { put } from './sections/put.ts';
import { workers } from './sections/workers.ts';

const sections: readonly Section[] = [get, workers, put, names, lists, memory, migrate, cutover];

const atLeastOne = wholeNumber(1);
const program = new Command('npm run bench --')
  .description(
    'Compare the speed and memory of the bridge with those of simpler servers, on a Redis of its own.',
  )
  .argument('[sections...]', 'what to measure (default: all but workers)')
  .option('--rounds <n>', 'measure everything this many times, in turn', atLeastOne, 7)
  .option('--seconds <n>', 'length of one measurement', atLeastOne, 1)
  .option('--profiles <n>', 'number of profiles to migrate', atLeastOne, 1_000_000)
  .option('--output <file>', 'write the figures to this file, as JSON', 'bench.json')
  .addHelpText(
    'after',
    notesAndExamples(
      `Sections:
${sections.map((section) => `  ${section.name.padEnd(8)} ${section.about}`).join('\n')}

The results are ratios: medians of rounds measured in turn, with the lowest and the highest. A ratio whose rounds
disagree is not shown. Absolute figures are only valid for this machine at this time.
Exit codes: 0 done, 1 a section failed, 2 wrong usage.`,
      ['bench', 'bench -- get put --rounds 11', 'bench -- migrate --profiles 100000 --output migrate.json'],
    ),
  )
  .action(run);

async function run(chosen: string[], options: Plan & { output: string }): Promise<void> {
  const unknown = chosen.filter((one) => !sections.some((section) => section.name === one));
  if (unknown.length > 0) program.error(`error: no such section: ${unknown.join(', ')}`);

  const built = spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
  if (built.status !== 0) throw new Error('the bridge could not be compiled');

  const { rounds, seconds, profiles, output } = options;
  const resources = await openResources({ rounds, seconds, profiles }, say);
  const results: Record<string, Row[]> = {};
  try {
    for (const section of sections) {
      if (chosen.length > 0 ? !chosen.includes(section.name) : section.onlyWhenNamed) continue;
      say(`${section.name}: ${section.about} …`);
      try {
        results[section.name] = await section.run(resources);
      } catch (error) {
        // The results of the other sections are still useful.
        say(`${section.name} failed: ${error instanceof Error ? error.message : String(error)}`);
        process.exitCode = 1;
      }
    }
  } finally {
    await resources.close();
  }
  const machine = `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`;
  const date = new Date().toISOString().slice(0, 10);
  writeFileSync(
    output,
    `${JSON.stringify({ date, machine, generator, rounds, seconds, sections: results }, null, 2)}\n`,
  );
  print(`\n${tableOf(Object.values(results).flat())}\n`);
  print(`${date}, ${machine}; ${generator}, medians of ${rounds} rounds of ${seconds} s; also in ${output}`);
}

function tableOf(rows: readonly Row[]): string {
  return table(
    ['measured', 'result', 'min..max', 'aim', 'met', 'absolute (noise)'],
    rows.map(({ what, result, spread, aim, met, noise }) => {
      const verdict = met === undefined ? undefined : met ? 'met' : 'MISSED';
      return [what, result, spread, aim, verdict, noise];
    }),
  );
}

await runTool(program);
