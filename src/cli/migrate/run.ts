import { setFlagsFromString } from 'node:v8';
import { readConfig } from '../../config.ts';
import { exportAll } from './export.ts';
import { apply } from './apply.ts';
import { follow, type FollowChoice } from './follow.ts';
import { forget } from './forget.ts';
import { entityNames } from '../../migration/records/records.ts';
import { plan } from './plan.ts';
import type { Shell } from '../shell.ts';
import type { CliEnvironment } from './session.ts';
import { verify } from './verify.ts';
import { status } from './status.ts';
import { migrateCommand, parseId, wholeNumber } from '../command-line.ts';
import { createTool, interrupted, type CommandResult } from '../tool.ts';
import {
  addSourceOptions,
  addWriteOptions,
  notEmpty,
  parseDuration,
  parseEntities,
  requireNeeded,
  runOption,
} from './options.ts';

/** Runs the migration tool. Returns the exit code; every error is one line with the remedy. */
export async function runMigrate(args: readonly string[], shell: Shell): Promise<number> {
  // V8 would learn to allocate what outlives a batch of a large source in the old generation, where it stays, with all
  // that it refers to, until a full collection.
  setFlagsFromString('--no-allocation-site-pretenuring');
  const { program, run } = createTool(migrateCommand, shell, shell);
  program
    .description('Migrate legacy data to Redis: plan, apply, verify. Every command can be repeated safely.')
    .examples('plan --source ./legacy', 'apply --source ./legacy', 'verify --source ./legacy')
    .addHelpText('after', programHelp);

  addWriteOptions(addSourceOptions(program.command('plan')))
    .description('read everything, write nothing: show problems in the source and what apply would change')
    .examples('plan --source ./legacy', 'plan --source postgres://reader@db/game --mapping map.yaml')
    .runs(configured(plan));

  addWriteOptions(addSourceOptions(program.command('apply')))
    .description('write the records; can be stopped at any time, and resumed by the same command')
    .examples(
      'apply --source ./legacy',
      'apply --source ./legacy --on-conflict skip --report refused.ndjson',
      'apply --source postgres://reader@db/game --mapping map.yaml --follow --lag 30s',
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
    .runs(
      configured((environment, flags: FollowChoice) =>
        flags.follow === true ? follow(environment, flags) : apply(environment, flags),
      ),
    );

  addSourceOptions(program.command('verify'))
    .description('compare the source with Redis in both directions, field by field; exit 1 on any difference')
    .examples('verify --source ./legacy', 'verify --source ./legacy --report differences.ndjson')
    .runs(configured(verify));

  program
    .command('status')
    .description('show the state of each run, including killed ones')
    .examples('status', 'status --run legacy-1f3870be --json')
    .addOption(runOption('only this run (default: all)'))
    .runs(configured(status));

  program
    .command('forget')
    .description('delete what a run keeps in Redis, or everything a rehearsal wrote; asks first')
    .examples('forget --run legacy-1f3870be', 'forget --rehearsal --yes')
    .addOption(runOption('the run to forget: an unfinished load is rolled back, other records stay'))
    .option(
      '--rehearsal',
      'delete all keys under KEY_PREFIX; refused for the default prefix and for one that a service has used',
    )
    .option('--yes', 'do not ask, for scripts')
    .runs(configured(forget));

  program
    .command('export')
    .description('write what Redis holds as NDJSON files that apply can read: a backup, and the way back')
    .examples('export --to ./backup', 'export --to ./acme --org acme --entities profiles,denylist')
    .requiredOption('--to <folder>', 'a new or empty folder', notEmpty)
    .option('--entities <list>', `only these, separated by commas: ${entityNames.join(', ')}`, parseEntities)
    .option('--org <organization>', 'only this organization', parseId)
    .runs(configured(exportAll));

  return await run(args, () =>
    shell.signal.aborted ? interrupted('interrupted: run the same command again') : undefined,
  );
}

/** A command with its configuration, once its options make sense together. */
function configured<Flags extends object>(
  command: (environment: CliEnvironment, flags: Flags) => Promise<CommandResult>,
) {
  return async (shell: Shell, flags: Flags): Promise<CommandResult> => {
    requireNeeded(flags as Record<string, unknown>);
    return await command({ ...shell, config: readConfig(shell.env) }, flags);
  };
}

const programHelp = `
It connects to REDIS_URL, or without it to the embedded Redis under DATA_DIR, whether or not the service is running.
The password of a source database is read from SOURCE_PASSWORD, or from the file named by SOURCE_PASSWORD_FILE.
The runbook is src/migration/README.md. Every command takes --help, with examples, and --json.
Exit codes: 0 done, 1 ran and found a problem, 2 wrong usage or configuration, 130 interrupted (run the same command again).`;

const followHelp = `
With --follow, each round prints a line (with --json, a line of JSON): what it read and wrote, and how far Redis is
behind the source. A problem in the first round ends the command. Later problems, such as an unavailable database or
Redis, are reported, and the next round tries again. Ctrl-C stops it with exit code 0 once it has caught up, or 1 if the
last round failed. The file of --report is that of the last round.`;
