import { Command, CommanderError } from 'commander';
import { ConfigError } from '../../src/config.ts';
import { isStoreUnavailable } from '../../src/redis/connect.ts';
import { auditCommand } from './audit.ts';
import { collectionCommand } from './collection.ts';
import { createContext, type AdminContext, type Surroundings } from './context.ts';
import { deprecationCommand } from './deprecation.ts';
import { fsckCommand } from './fsck.ts';
import { keyCommand } from './key.ts';
import { objectCommand } from './object.ts';
import { orgCommand } from './org.ts';
import { usageCommand } from './usage.ts';
import { walletCommand } from './wallet.ts';

/** How the tool is called, so that usage lines can be pasted. */
const tool = 'npm run -s admin --';

/** One file and one row for each group of commands. */
const groups: ((context: AdminContext) => Command)[] = [
  orgCommand,
  keyCommand,
  objectCommand,
  collectionCommand,
  walletCommand,
  auditCommand,
  fsckCommand,
  usageCommand,
  deprecationCommand,
];

/**
 * Runs the operator's tool. Returns the exit code: 0 done, 1 ran and found a problem, 2 wrong usage or
 * configuration, 130 interrupted. Every error is one line with the remedy.
 */
export async function runAdmin(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const context = createContext(surroundings);
  try {
    await createProgram(context, surroundings).parseAsync(args, { from: 'user' });
    return context.exitCode();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    surroundings.err(`error: ${describe(error)}\n`);
    return error instanceof ConfigError ? 2 : 1;
  } finally {
    await context.close();
  }
}

function createProgram(context: AdminContext, surroundings: Surroundings): Command {
  const program = new Command(tool)
    .description("The operator's tool of Profile Bridge: it works on the store that the service uses.")
    // A command's options are those after its name: `usage retire-check --org` is not `usage --org`.
    .enablePositionalOptions()
    .addHelpText('after', programHelp);
  for (const group of groups) program.addCommand(group(context));
  for (const command of commandsOf(program)) speakPlainly(command, surroundings);
  return program;
}

const programHelp = `
Examples:
  $ ${tool} org set acme --username-min 3 --username-max 20
  $ ${tool} key create --org acme --role player --user u-1 --client ios-4.2
  $ ${tool} fsck

The store is that of REDIS_URL, or else the embedded one under DATA_DIR, whether or not the service runs.
Every command takes --help, with examples, and --json.
Exit codes: 0 done, 1 ran and found a problem, 2 wrong usage or configuration, 130 interrupted.`;

function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}

/** Commander's errors on one line, with the way to the help. */
function speakPlainly(command: Command, { out, err }: Surroundings): void {
  const path: string[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent) path.unshift(at.name());
  command
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: out,
      writeErr: err,
      outputError: (text, write) => {
        const line = text.trim().replace(/[\p{Cc}\s]+/gu, ' ');
        write(`${line}${/[.)?]$/.test(line) ? ' See' : ': see'} ${path.join(' ')} --help\n`);
      },
    });
}

function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const line = message.trim().replaceAll(/\s*\n\s*/g, '; ');
  if (error instanceof ConfigError) return `the configuration is wrong: ${line}`;
  if (error instanceof Error && isStoreUnavailable(error)) {
    return `the store does not answer (${line}): see that it runs and that REDIS_URL is right, then run this again`;
  }
  if (line.startsWith('WRONGTYPE')) return `a key in the store is not what it should be: run ${tool} fsck`;
  return line;
}
