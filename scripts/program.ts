import type { Command } from 'commander';
import { runProgram, watchOutput } from '../src/cli/shell.ts';

/** Runs a developer's tool as a command line tool of the product runs: quiet without a reader, 2 for wrong usage. */
export async function runTool(program: Command): Promise<void> {
  watchOutput(() => process.exit());
  // What is to end with this process does so by its event `exit`, which a signal does not emit by itself.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  await runProgram(program);
}

/** The end of a help text. */
export function notesAndExamples(notes: string, examples: readonly string[]): string {
  return `\n${notes}\n\nExamples:\n${examples.map((example) => `  $ npm run ${example}`).join('\n')}`;
}

/** Prints a result. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Reports progress on standard error. */
export function say(line: string): void {
  process.stderr.write(line.endsWith('\n') ? line : `${line}\n`);
}
