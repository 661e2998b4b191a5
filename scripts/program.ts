import { CommanderError, InvalidArgumentError, type Command } from 'commander';
import { configureErrorsAndHelp } from '../src/cli/command-line.ts';

/** Runs a program on the arguments of this process; wrong usage is one line and exit code 2, as for admin and migrate. */
export async function runProgram(program: Command): Promise<void> {
  const out = (text: string): void => void process.stdout.write(text);
  configureErrorsAndHelp(program, out, say);
  try {
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  }
}

/** The end of a help text. */
export function notesAndExamples(notes: string, examples: readonly string[]): string {
  return `\n${notes}\n\nExamples:\n${examples.map((example) => `  $ npm run ${example}`).join('\n')}`;
}

/** Reports progress on standard error. */
export function say(line: string): void {
  process.stderr.write(line.endsWith('\n') ? line : `${line}\n`);
}

/** A parser for an option's value. */
export function wholeNumberFrom(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < least) {
      throw new InvalidArgumentError(`It must be a whole number of at least ${least}.`);
    }
    return value;
  };
}
