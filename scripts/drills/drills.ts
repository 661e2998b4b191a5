import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { counted, formatNumber } from '../../src/lib/numbers.ts';
import { table } from '../../src/lib/system/terminal.ts';
import { wholeNumber } from '../../src/cli/command-line.ts';
import { notesAndExamples, print, runTool, say } from '../program.ts';
import { drillCutover, type CutoverDrillOptions } from './cutover/drill.ts';
import { describeCutoverResults } from './cutover/results.ts';
import { drillFuzz, type FuzzOptions } from './fuzz/drill.ts';
import { describeResults, drillHistories } from './history/drill.ts';
import { faults } from './history/faults.ts';
import { describeToolResults, drillTools, type ToolDrillOptions } from './tools/drill.ts';

const atLeastOne = wholeNumber(1);
const exitCodes = 'Exit codes: 0 nothing violated, 1 a violation, 2 wrong usage.';
const program = new Command('npm run drills --')
  .description('Break bridges, Redis servers and tools on purpose, and check that nothing is lost.')
  .addHelpText(
    'after',
    notesAndExamples(
      `Each drill starts what it breaks, on free ports of 127.0.0.1. Without a command, history is run.
${exitCodes}`,
      [
        'drills',
        'drills -- tools',
        'drills -- cutover --switch "mirror -> reverse"',
        'drills -- fuzz --attacks 1000',
      ],
    ),
  );

program
  .command('history', { isDefault: true })
  .description('inject faults while clients call, and check that what they saw is linearizable')
  .option('--rounds <n>', 'number of rounds, shared among the faults', atLeastOne, 100)
  .option('--seed <n>', 'seed of the calls and faults', wholeNumber(0), 1)
  .addOption(choice('--fault <pattern>', 'only the faults whose names match'))
  .addHelpText(
    'after',
    notesAndExamples(
      `Faults:
${faults.map((fault) => `  ${fault.name}`).join('\n')}

In each round ten clients call two organizations of four users and eight names, through two bridges on one Redis. What
was answered 503, or not at all, may have taken effect or not. "lost writes" were acknowledged and are gone: only a
failover without WRITE_REPLICAS may lose any.
${exitCodes}`,
      [
        'drills',
        'drills -- history --rounds 20 --fault killed',
        'drills -- history --fault "slots move$" --rounds 4 --seed 7',
      ],
    ),
  )
  .action(async ({ rounds, seed, fault }: { rounds: number; seed: number; fault: RegExp }) => {
    const chosen = faults.filter((one) => fault.test(one.name));
    finishAll(await drillHistories(chosen, { rounds, seed, say }), describeResults);
  });

program
  .command('tools')
  .description("interrupt the operator's tools at every command they send to Redis, and check what is left")
  .option('--step <n>', 'only every n-th command', atLeastOne, 1)
  .option('--first <n>', 'begin at this command', atLeastOne, 1)
  .addOption(choice('--tool <pattern>', 'only the tools whose names match'))
  .addOption(choice('--fault <pattern>', 'only the faults whose names match'))
  .addHelpText(
    'after',
    notesAndExamples(
      `At its n-th command a tool is killed, loses the reply, has a second run of the same tool beside it, or is stalled
until its lease is over while others go on. Then index and profiles must agree, nothing may be lost, and the same
command, run again, must end as if nothing had happened.
${exitCodes}`,
      ['drills -- tools', 'drills -- tools --tool "org set" --fault stalled --first 9 --step 1000'],
    ),
  )
  .action(async (options: Omit<ToolDrillOptions, 'say'>) => {
    finishAll(await drillTools({ ...options, say }), describeToolResults);
  });

program
  .command('cutover')
  .description(
    'stop a bridge, the tool or Redis at every step of a switch of the mode, and check what clients see',
  )
  .option('--commands <n>', 'at how many commands of each step at most', atLeastOne, 1)
  .option('--first <n>', 'begin at this command of each step', atLeastOne, 1)
  .addOption(choice('--switch <pattern>', 'only the switches that match, such as "mirror -> native"'))
  .addOption(choice('--step <pattern>', 'only the steps that match'))
  .addOption(choice('--stop <pattern>', 'only what matches is stopped'))
  .addHelpText(
    'after',
    notesAndExamples(
      `Two bridges run in front of a stand-in for the legacy service, while clients change and read profiles and an
administrator bans names. "admin cutover set" runs as a process; at each command that it sends to Redis, a bridge, the
tool or Redis is paused for six seconds, or killed. No request may fail, except on the connections of what was stopped;
there must never be two authorities; and the switch must be made or withdrawn.
${exitCodes}`,
      [
        'drills -- cutover',
        'drills -- cutover --switch "mirror -> native" --step "move reads" --stop "tool killed" --commands 3',
      ],
    ),
  )
  .action(async (options: Omit<CutoverDrillOptions, 'say'>) => {
    finishAll(await drillCutover({ ...options, say }), describeCutoverResults);
  });

program
  .command('fuzz')
  .description('attack a bridge over raw sockets, and check that it neither fails nor leaks')
  .option('--attacks <n>', 'number of random attacks, after the known ones', wholeNumber(0), 100_000)
  .option('--first <n>', 'number of the first random attack', wholeNumber(0), 0)
  .option('--seed <n>', 'seed of the random attacks', wholeNumber(0), 1)
  .addHelpText(
    'after',
    notesAndExamples(
      `No response may be a 5xx, and the bridge may not end, keep sockets or slots, or grow. An attack that is answered
503 is repeated: on a busy machine Redis may respond too late.
${exitCodes}`,
      ['drills -- fuzz', 'drills -- fuzz --attacks 1 --first 4711 --seed 1'],
    ),
  )
  .action(async (options: Omit<FuzzOptions, 'say'>) => {
    const { attacks, answers, repeated, memory, violations } = await drillFuzz({ ...options, say });
    const rows = [...answers]
      .sort(([one], [other]) => one - other)
      .map(([status, count]) => [String(status), formatNumber(count)]);
    const figures = [
      table(['status', 'answers'], rows, ['answers']),
      `${formatNumber(attacks)} attacks (${formatNumber(repeated)} repeated after a 503); memory ${memory.before} MiB, then ${memory.after} MiB; ${counted(violations.length, 'violation')}`,
    ];
    finish(figures.join('\n\n'), violations.length > 0);
  });

function finishAll<Result extends { violations: readonly unknown[] }>(
  results: readonly Result[],
  describe: (results: readonly Result[]) => string,
): void {
  if (results.length === 0) program.error('error: nothing to drill matches these options');
  finish(
    describe(results),
    results.some(({ violations }) => violations.length > 0),
  );
}

function finish(text: string, isViolated: boolean): void {
  print(`\n${text}`);
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

// What killed processes leave behind goes with the folder.
const folder = mkdtempSync(join(tmpdir(), 'drills-'));
process.env['TMPDIR'] = folder;
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
await runTool(program);
