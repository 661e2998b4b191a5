import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/command-line.ts';
import { notesAndExamples, runTool } from '../program.ts';
import { rehearse, type Plan } from './rehearse.ts';
import { describeRehearsal, eventLine } from './report.ts';

/** As built and shipped. */
const program = [fileURLToPath(new URL('../../dist/scripts/profile-bridge.js', import.meta.url))];

const atLeastOne = wholeNumber(1);
const rehearsal = new Command('npm run rehearsal --')
  .description(
    'Go through a whole cut-over, with a return, from a stand-in for the legacy service, while clients call and two bridges are killed at random moments.',
  )
  .option('--users <n>', 'number of users with a profile', atLeastOne, 5000)
  .option('--rate <n>', 'requests per second', atLeastOne, 200)
  .option('--seconds <n>', 'let clients call for at least this long before each step', atLeastOne, 15)
  .option('--seed <n>', 'seed of the requests and kills', atLeastOne, 1)
  .addHelpText(
    'after',
    notesAndExamples(
      `It starts everything itself, on free ports of 127.0.0.1. The seed determines what is sent, but not when it arrives.
Exit codes: 0 done, 1 a request failed, an acknowledged change was lost or the two sides differ in the end, 2 wrong
usage.`,
      ['rehearsal', 'rehearsal -- --users 500 --seconds 5 --seed 7'],
    ),
  )
  .action(async (options: Pick<Plan, 'users' | 'rate' | 'seconds' | 'seed'>) => {
    const report = (at: number, line: string): void => void process.stdout.write(`${eventLine(at, line)}\n`);
    const rehearsed = await rehearse({
      ...options,
      program,
      legacyTimeout: 4,
      pause: [3, 30],
      kills: 2,
      mostKills: Infinity,
      say: report,
    });
    process.stdout.write(`\n${describeRehearsal(rehearsed)}\n`);
    if (rehearsed.violations.length > 0) process.exitCode = 1;
  });

await runTool(rehearsal);
