import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { rehearse } from './rehearse.ts';
import { describeRehearsal, eventLine } from './report.ts';

interface Options {
  users: number;
  rate: number;
  seconds: number;
  seed: number;
}

/** As built and shipped. */
const program = [fileURLToPath(new URL('../../dist/scripts/profile-bridge.js', import.meta.url))];

const rehearsal = new Command('npm run rehearsal --')
  .description(
    'Takes over from a stand-in for the legacy service, with a return, while clients call and two bridges are killed at random moments. Exits 1 if a request fails, an acknowledged change is lost, or the two sides differ in the end.',
  )
  .option('--users <n>', 'how many users have a profile', wholeNumber, 5000)
  .option('--rate <n>', 'requests per second', wholeNumber, 200)
  .option('--seconds <n>', 'how long clients call at least before each step', wholeNumber, 15)
  .option('--seed <n>', 'what requests and kills follow from', wholeNumber, 1)
  .addHelpText(
    'after',
    `
Everything is started by the rehearsal itself, on free ports of 127.0.0.1. What is sent follows from --seed; when it
arrives does not.

Examples:
  $ npm run rehearsal
  $ npm run rehearsal -- --users 500 --seconds 5 --seed 7`,
  )
  .action(async ({ users, rate, seconds, seed }: Options) => {
    const say = (at: number, line: string): void => void process.stdout.write(`${eventLine(at, line)}\n`);
    const rehearsed = await rehearse({ program, users, rate, seconds, seed, pause: [3, 30], kills: 2, say });
    process.stdout.write(`\n${describeRehearsal(rehearsed)}\n`);
    if (rehearsed.violations.length > 0) process.exitCode = 1;
  });

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new InvalidArgumentError('It must be a whole number above 0.');
  return value;
}

await rehearsal.parseAsync();
