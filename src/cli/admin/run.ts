import { Command, CommanderError } from 'commander';
import { ConfigError } from '../../config.ts';
import { version } from '../../version.ts';
import { adminCommand, describeError, configureErrorOutput } from '../command-line.ts';
import { auditCommand } from './audit.ts';
import type { Shell } from '../shell.ts';
import { createContext, type AdminContext } from './context.ts';
import { cutoverCommand } from './cutover/cutover.ts';
import { deprecationCommand } from './deprecation/deprecation.ts';
import { fsckCommand } from './fsck.ts';
import { keyCommand } from './key.ts';
import { orgCommand } from './org.ts';
import { collectionCommand, objectCommand, walletCommand } from './profile-data.ts';
import { upgradeCommand } from './upgrade.ts';
import { usageCommand } from './usage.ts';

/** The commands, in the order of the help. */
const groups: ((context: AdminContext) => Command)[] = [
  orgCommand,
  keyCommand,
  objectCommand,
  collectionCommand,
  walletCommand,
  auditCommand,
  fsckCommand,
  upgradeCommand,
  usageCommand,
  deprecationCommand,
  cutoverCommand,
];

/**
 * Runs the operator's tool. Returns the exit code: 0 done, 1 ran and found a problem, 2 wrong usage or
 * configuration, 130 interrupted. Every error is one line with the remedy.
 */
export async function runAdmin(args: readonly string[], shell: Shell): Promise<number> {
  const context = createContext(shell);
  try {
    await createProgram(context).parseAsync(args, { from: 'user' });
    return context.exitCode();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    context.err(`error: ${describeError(error)}\n`);
    return error instanceof ConfigError ? 2 : 1;
  } finally {
    await context.close();
  }
}

function createProgram(context: AdminContext): Command {
  const program = new Command(adminCommand)
    .version(version)
    .description(
      "Manages the organizations, API keys and deprecation of Profile Bridge, in the service's Redis.",
    )
    // In `usage retire-check --org acme`, the option is that of retire-check, not that of usage.
    .enablePositionalOptions()
    .addHelpText('after', programHelp);
  for (const group of groups) program.addCommand(group(context));
  configureErrorOutput(program, context.out, context.err);
  return program;
}

const programHelp = `
Examples:
  $ ${adminCommand} org set acme --username-min 3 --username-max 20
  $ ${adminCommand} key create --org acme --role player --user u-1 --client ios-4.2
  $ ${adminCommand} fsck

It connects to REDIS_URL, or without it to the embedded Redis under DATA_DIR, whether or not the service is running.
Every command takes --help, with examples, and --json.
Exit codes: 0 done, 1 ran and found a problem, 2 wrong usage or configuration, 130 interrupted.`;
