import { Command, InvalidArgumentError } from 'commander';
import { describeResults, drillHistories } from './history/drill.ts';
import { faults } from './history/faults.ts';

const program = new Command('npm run drills --').description(
  'Breaks bridges, Redis servers and tools that it starts itself, and checks that nothing is lost. Exits 1 on a violation.',
);

program
  .command('history', { isDefault: true })
  .description('injects faults while clients call, and checks that what they saw is linearizable')
  .option('--rounds <n>', 'how many rounds, shared among the faults', wholeNumber, 100)
  .option('--seed <n>', 'what calls and faults follow from', wholeNumber, 1)
  .option('--only <text>', 'only the faults with this in their name')
  .addHelpText(
    'after',
    `
Faults:
${faults.map(({ name }) => `  ${name}`).join('\n')}

In each round ten clients call two organizations of four users and eight names, through two bridges on one Redis. What
was answered 503, or not at all, may have taken effect or not. "lost writes" were acknowledged and are gone: only a
failover without WRITE_REPLICAS may lose any.

Examples:
  $ npm run drills
  $ npm run drills -- --rounds 20 --only killed
  $ npm run drills -- history --only "slots move" --rounds 4 --seed 7`,
  )
  .action(async ({ rounds, seed, only = '' }: { rounds: number; seed: number; only?: string }) => {
    const exact = faults.filter(({ name }) => name === only);
    const chosen = exact.length > 0 ? exact : faults.filter(({ name }) => name.includes(only));
    if (chosen.length === 0)
      program.error(`error: no fault has "${only}" in its name: see --help`, { exitCode: 2 });
    const results = await drillHistories(chosen, { rounds, seed, say });
    finish(
      describeResults(results),
      results.some(({ violations }) => violations.length > 0),
    );
  });

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function finish(table: string, isViolated: boolean): void {
  process.stdout.write(`\n${table}\n`);
  if (isViolated) process.exitCode = 1;
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError('It must be a whole number.');
  return value;
}

await program.parseAsync();
