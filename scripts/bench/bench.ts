import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
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
import { table } from './report/table.ts';

const sections: readonly Section[] = [get, workers, put, names, lists, memory, migrate, cutover];

const program = new Command('npm run bench --')
  .description('Measures the bridge side by side with what it can be compared to, on a Redis of its own.')
  .argument(
    '[sections...]',
    `which to run (default: all but workers): ${sections.map(({ name }) => name).join(', ')}`,
  )
  .option('--rounds <n>', 'how often everything is measured, in turn', atLeastOne, 7)
  .option('--seconds <n>', 'how long one measurement lasts', atLeastOne, 1)
  .option('--profiles <n>', 'how many the migration brings in', atLeastOne, 1_000_000)
  .option('--output <file>', 'where the figures go', 'bench.json')
  .addHelpText(
    'after',
    `
Sections:
${sections.map(({ name, about }) => `  ${name.padEnd(8)} ${about}`).join('\n')}

Ratios count: medians of rounds measured in turn, with the lowest and the highest. Absolute figures hold for
this machine in this minute. A ratio whose rounds disagree is not shown.`,
  )
  .action(run);

async function run(chosen: string[], options: Plan & { output: string }): Promise<void> {
  const unknown = chosen.filter((name) => !sections.some((section) => section.name === name));
  if (unknown.length > 0)
    program.error(`no such section: ${unknown.join(', ')} (see --help)`, { exitCode: 2 });

  const built = spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
  if (built.status !== 0) program.error('the bridge could not be compiled');

  const { rounds, seconds, profiles, output } = options;
  const say = (line: string) => void process.stderr.write(`${line}\n`);
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
  process.stdout.write(
    `\n${table(Object.values(results).flat())}\n\n` +
      `${date}, ${machine}; ${generator}, medians of ${rounds} rounds of ${seconds} s; also in ${output}\n`,
  );
}

function atLeastOne(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new InvalidArgumentError('It must be a whole number above 0.');
  return value;
}

await program.parseAsync();
