import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { counted, number } from '../../src/lib/numbers.ts';
import { table } from '../../src/lib/system/terminal.ts';
import { drillCutover } from './cutover/drill.ts';
import { describeCutoverResults } from './cutover/results.ts';
import { drillFuzz } from './fuzz/drill.ts';
import { describeResults, drillHistories } from './history/drill.ts';
import { faults } from './history/faults.ts';
import { describeToolResults, drillTools } from './tools/drill.ts';

const program = new Command('npm run drills --').description(
  'Breaks bridges, Redis servers and tools that it starts itself, and checks that nothing is lost. Exits 1 on a violation.',
);

program
  .command('history', { isDefault: true })
  .description('injects faults while clients call, and checks that what they saw is linearizable')
  .option('--rounds <n>', 'how many rounds, shared among the faults', wholeNumber, 100)
  .option('--seed <n>', 'what calls and faults follow from', wholeNumber, 1)
  .addOption(choice('--fault <pattern>', 'only the faults whose names match'))
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
  $ npm run drills -- --rounds 20 --fault killed
  $ npm run drills -- history --fault "slots move$" --rounds 4 --seed 7`,
  )
  .action(async ({ rounds, seed, fault }: { rounds: number; seed: number; fault: RegExp }) => {
    const chosen = faults.filter(({ name }) => fault.test(name));
    if (chosen.length === 0)
      program.error(`error: no fault matches ${String(fault)}: see --help`, { exitCode: 2 });
    const results = await drillHistories(chosen, { rounds, seed, say });
    finish(
      describeResults(results),
      results.some(({ violations }) => violations.length > 0),
    );
  });

program
  .command('tools')
  .description("interrupts the operator's tools at every command they send to Redis, and checks what is left")
  .option('--step <n>', 'only every n-th command', wholeNumber, 1)
  .option('--first <n>', 'the command to begin at', wholeNumber, 1)
  .addOption(choice('--tool <pattern>', 'only the tools whose names match'))
  .addOption(choice('--fault <pattern>', 'only the faults whose names match'))
  .addHelpText(
    'after',
    `
At its n-th command a tool is killed, or loses the reply, or has a second run of the same tool beside it, or is stalled
until its lease is over while others go on. Then index and profiles must agree, nothing may be lost, and the same
command, run again, must end as if nothing had happened.

Examples:
  $ npm run drills -- tools
  $ npm run drills -- tools --tool "org set" --fault stalled --first 9 --step 1000`,
  )
  .action(async ({ step, first, tool, fault }: ToolOptions) => {
    const results = await drillTools({ tools: tool, faults: fault, step, first, say });
    finish(
      describeToolResults(results),
      results.some(({ violations }) => violations.length > 0),
    );
  });

program
  .command('cutover')
  .description(
    'stops an instance, the tool or Redis at every step of a switch of the mode, and checks what clients see',
  )
  .option('--commands <n>', 'at how many commands of each step at most', wholeNumber, 1)
  .option('--first <n>', 'the command of each step to begin at', wholeNumber, 1)
  .addOption(choice('--switch <pattern>', 'only the switches that match, as "mirror -> native"'))
  .addOption(choice('--step <pattern>', 'only the steps that match'))
  .addOption(choice('--stop <pattern>', 'only what matches is stopped'))
  .addHelpText(
    'after',
    `
Two bridges stand in front of a stand-in legacy service, while clients change and read profiles and an administrator
bans names. \`admin cutover set\` runs as a process; at each command that it sends to Redis a bridge, the tool or Redis
is paused for six seconds, or killed. No request may fail, except on the connections of what was stopped; there must
never be two authorities; and the switch must be made or withdrawn.

Examples:
  $ npm run drills -- cutover
  $ npm run drills -- cutover --switch "mirror -> native" --step "move reads" --stop "tool killed" --commands 3`,
  )
  .action(async ({ commands, first, switch: switches, step, stop }: CutoverOptions) => {
    const results = await drillCutover({ switches, steps: step, stops: stop, commands, first, say });
    finish(
      describeCutoverResults(results),
      results.some(({ violations }) => violations.length > 0),
    );
  });

program
  .command('fuzz')
  .description('attacks a bridge over raw sockets, and checks that it stays whole')
  .option('--attacks <n>', 'how many random attacks follow the known ones', wholeNumber, 100_000)
  .option('--first <n>', 'the number of the first random attack', wholeNumber, 0)
  .option('--seed <n>', 'what the random attacks follow from', wholeNumber, 1)
  .addHelpText(
    'after',
    `
No answer may be a 5xx, and the bridge may not end, keep sockets or slots, or grow. An attack that is answered 503 is
repeated: on a busy machine Redis may respond too late.

Examples:
  $ npm run drills -- fuzz
  $ npm run drills -- fuzz --attacks 1 --first 4711 --seed 1`,
  )
  .action(async (options: { attacks: number; first: number; seed: number }) => {
    const { attacks, answers, repeated, memory, violations } = await drillFuzz({ ...options, say });
    const rows = [...answers]
      .sort(([one], [other]) => one - other)
      .map(([status, count]) => [String(status), number(count)]);
    const figures = [
      table(['status', 'answers'], rows, ['answers']),
      `${number(attacks)} attacks (${number(repeated)} repeated after a 503); memory ${memory.before} MiB, then ${memory.after} MiB; ${counted(violations.length, 'violation')}`,
    ];
    finish(figures.join('\n\n'), violations.length > 0);
  });

interface ToolOptions {
  step: number;
  first: number;
  tool: RegExp;
  fault: RegExp;
}

interface CutoverOptions {
  commands: number;
  first: number;
  switch: RegExp;
  step: RegExp;
  stop: RegExp;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function finish(text: string, isViolated: boolean): void {
  process.stdout.write(`\n${text}\n`);
  if (isViolated) process.exitCode = 1;
}

/** An option that chooses by a regular expression, by default everything. */
function choice(flags: string, description: string): Option {
  return new Option(flags, description).argParser(pattern).default(/^/, 'all');
}

function pattern(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch (error) {
    throw new InvalidArgumentError(`It must be a regular expression (${String(error)}).`);
  }
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError('It must be a whole number.');
  return value;
}

// What killed processes leave behind goes with the folder.
const folder = mkdtempSync(join(tmpdir(), 'drills-'));
process.env['TMPDIR'] = folder;
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
await program.parseAsync();
