import type { Command } from 'commander';
import { runProgram, watchOutput } from '../src/cli/shell.ts';

/** Runs a developer's tool like the product's own: it ends quietly once nobody reads its output, and with 2 on wrong usage. */
export async function runTool(program: Command): Promise<void> {
  watchOutput(() => process.exit());
  // Child processes are ended by the event `exit`, which Node.js does not emit where a signal ends the process.
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
