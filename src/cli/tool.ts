import { Command, CommanderError } from 'commander';
import { ConfigError } from '../config.ts';
import { printable } from '../lib/system/terminal.ts';
import { UsageError } from '../migration/errors.ts';
import { version } from '../version.ts';
import { configureErrorsAndHelp, describeError } from './command-line.ts';
import { readerGone, type Shell } from './shell.ts';

/** How a command ended. `json` is for machines, `text` for people; both are absent if all has been printed. */
export interface CommandResult {
  exitCode: 0 | 1 | 2 | 130;
  json?: unknown;
  text?: string;
  /** One line with the remedy if the output cannot be written, though it cannot be shown again. */
  ifLost?: string;
  /** One line with the remedy, unless all is well. */
  error?: string | undefined;
}

export function done(json: unknown, text: string): CommandResult {
  return { exitCode: 0, json, text };
}

/** For a command that ran and found a problem. */
export function problem(error: string, output: { json?: unknown; text?: string } = {}): CommandResult {
  return { exitCode: 1, error, ...output };
}

export function wrongUsage(error: string): CommandResult {
  return { exitCode: 2, error };
}

export function interrupted(error = 'interrupted'): CommandResult {
  return { exitCode: 130, error };
}

/** A tool whose commands share a context. Unprintable characters in texts and errors are escaped. */
export function createTool<Context>(name: string, context: Context, { out, err, signal }: Shell) {
  let exitCode = 0;
  const finish = (result: CommandResult, { json: isJson = false }: { json?: boolean } = {}): void => {
    const { json, text, error } = result;
    const ifLost = result.ifLost && printable(result.ifLost);
    exitCode = result.exitCode;
    if (isJson && json !== undefined) out(`${JSON.stringify(json, null, 2)}\n`, ifLost);
    if (!isJson && text) out(`${text.split('\n').map(printable).join('\n')}\n`, ifLost);
    // As with `| head`. A report of what was done, and what is left to do, is not lost like that.
    const isQuiet = exitCode === 130 && text === undefined && signal.reason === readerGone;
    if (error !== undefined && !isQuiet) err.write(`error: ${printable(error)}\n`);
  };

  /** A command of the tool, or a group of them. */
  class ToolCommand extends Command {
    override createCommand(own = ''): ToolCommand {
      return new ToolCommand(own);
    }

    /** Adds examples to the help; they are given without the tool's name. */
    examples(...examples: string[]): this {
      const lines = examples.map((example) => `  $ ${name} ${example}`);
      return this.addHelpText('after', `\nExamples:\n${lines.join('\n')}`);
    }

    /** Adds `--json`, and makes the command run with its arguments and options, and print how it ended. */
    runs(run: (context: Context, ...args: never[]) => Promise<CommandResult>): this {
      return this.option('--json', 'print JSON, for machines').action(async (...args) => {
        finish(await run(context, ...(args as never[])), this.opts());
      });
    }
  }

  const program = new ToolCommand(name).version(version);
  return {
    program,
    /**
     * Runs the program. Returns the exit code: 0 done, 1 ran and found a problem, 2 wrong usage or configuration, 130
     * interrupted. `resultOf` gives the result of a command that has thrown an error because it was interrupted.
     */
    run: async (
      args: readonly string[],
      resultOf: (error: unknown) => CommandResult | undefined,
    ): Promise<number> => {
      configureErrorsAndHelp(program, out, (text) => err.write(text));
      try {
        await program.parseAsync(args, { from: 'user' });
      } catch (error) {
        if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
        const isUsage = error instanceof ConfigError || error instanceof UsageError;
        finish(resultOf(error) ?? { exitCode: isUsage ? 2 : 1, error: describeError(error) });
      }
      return exitCode;
    },
  };
}
