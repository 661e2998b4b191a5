import { setFlagsFromString } from 'node:v8';
import { Command, CommanderError } from 'commander';
import { ConfigError, readConfig } from '../../config.ts';
import { version } from '../../version.ts';
import { UsageError } from '../../migration/engine/issues.ts';
import { exportAll } from './export.ts';
import { apply } from './apply.ts';
import { follow, type FollowChoice } from './follow.ts';
import { forget } from './forget.ts';
import { entityNames } from '../../migration/records/records.ts';
import { plan } from './plan.ts';
import type { Shell } from '../shell.ts';
import type { CommandResult } from './report/command-result.ts';
import type { CliEnvironment } from './session.ts';
import { verify } from './verify.ts';
import { status } from './status.ts';
import {
  describeError,
  examplesText,
  migrateCommand,
  configureErrorsAndHelp,
  wholeNumber,
} from '../command-line.ts';
import {
  addSourceOptions,
  addWriteOptions,
  parseDuration,
  parseEntities,
  requireNeeded,
  runOption,
} from './options.ts';

/**
 * Runs the migration tool. Returns the exit code: 0 done, 1 ran and found a problem, 2 wrong usage or configuration,
 * 130 interrupted. Every error is one line with the remedy.
 */
export async function runMigrate(args: readonly string[], tool: Shell): Promise<number> {
  // V8 would move what outlives one batch of a large source to the old generation for good: all that refers to stays
  // in memory until a full collection.
  setFlagsFromString('--no-allocation-site-pretenuring');
  let exitCode = 0;
  const program = createProgram(tool, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (tool.signal.aborted) {
      tool.err.write('error: interrupted: run the same command again\n');
      return 130;
    }
    tool.err.write(`error: ${describeError(error)}\n`);
    return error instanceof ConfigError || error instanceof UsageError ? 2 : 1;
  }
}

function createProgram(tool: Shell, onExit: (code: number) => void): Command {
  const { out, err } = tool;
  const toAction =
    <Own>(command: (environment: CliEnvironment, flags: Own) => Promise<CommandResult>) =>
    async (flags: Own & { json?: boolean }): Promise<void> => {
      requireNeeded(flags);
      const outcome = await command({ ...tool, config: readConfig(tool.env) }, flags);
      const printed = flags.json === true ? JSON.stringify(outcome.json, null, 2) : outcome.text;
      if (printed !== undefined && printed !== '') out(`${printed}\n`);
      if (outcome.error !== undefined) err.write(`error: ${outcome.error}\n`);
      onExit(outcome.exitCode);
    };
  const program = new Command(migrateCommand)
    .version(version)
    .description('Migrate legacy data to Redis: plan, apply, verify. Every command can be repeated safely.')
    .addHelpText('after', programHelp);
  const add = (name: string, description: string, examples: readonly string[]): Command =>
    program
      .command(name)
      .description(description)
      .addHelpText('after', examplesText(migrateCommand, examples));

  const planning = add(
    'plan',
    'read everything, write nothing: show problems in the source and what apply would change',
    ['plan --source ./legacy', 'plan --source postgres://reader@db/game --mapping map.yaml'],
  ).action(toAction(plan));
  addWriteOptions(addSourceOptions(planning));

  const applying = add(
    'apply',
    'write the records; can be stopped at any time, and resumed by the same command',
    [
      'apply --source ./legacy',
      'apply --source ./legacy --on-conflict skip --report refused.ndjson',
      'apply --source postgres://reader@db/game --mapping map.yaml --follow --lag 30s',
    ],
  )
    .option(
      '--rate <records>',
      'write at most this many records per second (default: no limit)',
      wholeNumber(1, 10_000_000),
    )
    .option('--fresh', 'start the run over instead of resuming it')
    .option(
      '--copy-pictures [folder]',
      'also copy the pictures at profilePictureUrl, from their URLs or from a folder',
    )
    .option('--allow-private-addresses', 'let --copy-pictures connect to private and loopback addresses')
    .option('--follow', 'keep applying changes until stopped (Ctrl-C)')
    .option('--lag <time>', 'with --follow: time between rounds (default: 10s)', parseDuration)
    .option(
      '--full-every <time>',
      'with --follow: how often a round reads all rows, and prunes if --prune is given (default: 1h)',
      parseDuration,
    )
    .addHelpText('after', followHelp)
    .action(
      toAction((environment, flags: FollowChoice) =>
        flags.follow === true ? follow(environment, flags) : apply(environment, flags),
      ),
    );
  addWriteOptions(addSourceOptions(applying));

  const verifying = add(
    'verify',
    'compare the source with Redis in both directions, field by field; exit 1 on any difference',
    ['verify --source ./legacy', 'verify --source ./legacy --report differences.ndjson'],
  ).action(toAction(verify));
  addSourceOptions(verifying);

  add('status', 'show the state of each run, including killed ones', [
    'status',
    'status --run legacy-1f3870be --json',
  ])
    .addOption(runOption('only this run (default: all)'))
    .option('--json', 'print JSON, for machines')
    .action(toAction(status));

  add('forget', 'delete what a run keeps in Redis, or everything a rehearsal wrote; asks first', [
    'forget --run legacy-1f3870be',
    'forget --rehearsal --yes',
  ])
    .addOption(runOption('the run to forget: an unfinished load is rolled back, other records stay'))
    .option('--rehearsal', "delete all keys under KEY_PREFIX, if that is not the default nor a service's")
    .option('--yes', 'do not ask, for scripts')
    .option('--json', 'print JSON, for machines')
    .action(toAction(forget));

  add('export', 'write what Redis holds as NDJSON files that apply can read: a backup, and the way back', [
    'export --to ./backup',
    'export --to ./acme --org acme --entities profiles,denylist',
  ])
    .requiredOption('--to <folder>', 'a new or empty folder')
    .option('--entities <list>', `only these, separated by commas: ${entityNames.join(', ')}`, parseEntities)
    .option('--org <organization>', 'only this organization')
    .option('--json', 'print JSON, for machines')
    .action(toAction(exportAll));

  configureErrorsAndHelp(program, out, (text) => err.write(text));
  return program;
}

const programHelp = `
Examples:
  $ ${migrateCommand} plan --source ./legacy
  $ ${migrateCommand} apply --source ./legacy
  $ ${migrateCommand} verify --source ./legacy

It connects to REDIS_URL, or without it to the embedded Redis under DATA_DIR, whether or not the service is running.
The password of a source database is read from SOURCE_PASSWORD, or from the file named by SOURCE_PASSWORD_FILE.
The runbook is src/migration/README.md. Every command takes --help, with examples, and --json.
Exit codes: 0 done, 1 ran and found a problem, 2 wrong usage or configuration, 130 interrupted (run the same command again).`;

const followHelp = `
With --follow, each round prints a line (with --json, a line of JSON): what it read and wrote, and how far Redis is
behind the source. A problem in the first round ends the command. Later problems, such as an unavailable database or
Redis, are reported, and the next round tries again. Ctrl-C stops it with exit code 0 once it has caught up, or 1 if the
last round failed. The file of --report is that of the last round.`;
