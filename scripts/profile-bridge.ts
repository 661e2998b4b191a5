#!/usr/bin/env node
import { Command } from 'commander';
import { runFromShell, runProgram, type Shell } from '../src/cli/shell.ts';
import { version } from '../src/version.ts';

const program = new Command('profile-bridge')
  .description("Keep the deprecated User Profile Service's HTTP API available on Redis.")
  .version(version)
  .enablePositionalOptions()
  .addHelpText(
    'after',
    `
Examples:
  $ profile-bridge serve
  $ profile-bridge admin key create --org acme --role player --user u-1
  $ profile-bridge migrate plan --source ./legacy

Configuration is read from environment variables: scripts/deploy/CONFIGURATION.md lists them.`,
  );

program
  .command('serve')
  .version(version)
  .description('run the service; SIGTERM stops it after answering pending requests')
  .addHelpText(
    'after',
    `
Examples:
  $ profile-bridge serve
  $ REDIS_URL=redis://127.0.0.1:6379 PORT=8000 profile-bridge serve

Without REDIS_URL, the service starts a redis-server of its own and keeps its data under DATA_DIR.
scripts/deploy/CONFIGURATION.md lists all environment variables.
Exit codes: 0 stopped by a signal, 1 could not start, 2 invalid configuration.`,
  )
  .action(async () => {
    // Loading takes a while, in which a first process of a container would ignore the signal, and others end by it.
    const stop = (): never => process.exit(0);
    process.on('SIGTERM', stop).on('SIGINT', stop);
    await import('../src/main.ts');
    process.off('SIGTERM', stop).off('SIGINT', stop);
  });

addTool(
  'admin',
  'manage organizations, API keys, objects, the deprecation and the cut-over; see who still calls',
  async () => (await import('../src/cli/admin/run.ts')).runAdmin,
);
addTool(
  'migrate',
  'move legacy data into Redis: plan, apply, verify, export',
  async () => (await import('../src/cli/migrate/run.ts')).runMigrate,
);

/** Adds a command that parses its own arguments, `--help` included. */
function addTool(
  name: string,
  description: string,
  load: () => Promise<(args: readonly string[], shell: Shell) => Promise<number>>,
): void {
  program
    .command(name)
    .description(description)
    .helpOption(false)
    .argument('[arguments...]')
    .passThroughOptions()
    .allowUnknownOption()
    .action(async () => {
      const run = await load();
      await runFromShell((shell) => run(process.argv.slice(3), shell));
    });
}

// Only the tools know their own commands: `help migrate plan` is their `migrate help plan`.
const [, , first, tool = ''] = process.argv;
if (first === 'help' && /^(admin|migrate)$/.test(tool)) process.argv.splice(2, 2, tool, 'help');

// As by `… --help | head`. Not watchOutput, as the tools do: the service outlives the reader of its log.
process.stdout.on('error', () => {});
await runProgram(program);
