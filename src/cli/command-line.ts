import type { Command } from 'commander';
import { ConfigError } from '../config.ts';
import { isStoreUnavailable } from '../redis/connection/connect.ts';

/** How the two tools are called, as examples and remedies show it. */
export const adminCommand = 'profile-bridge admin';
export const migrateCommand = 'profile-bridge migrate';

/** What a help text ends with; the examples come without the tool's own name. */
export function examplesText(tool: string, examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((example) => `  $ ${tool} ${example}`).join('\n')}`;
}

/** Makes a program and all its commands tell their errors on one line, with the way to the help. */
export function configureErrorOutput(
  program: Command,
  out: (text: string) => void,
  err: (text: string) => void,
): void {
  for (const command of commandsOf(program)) {
    command
      .exitOverride()
      .showSuggestionAfterError()
      .configureOutput({
        writeOut: out,
        writeErr: err,
        outputError: (text, write) => {
          const line = text.trim().replaceAll(/[\p{Cc}\s]+/gu, ' ');
          write(`${line}${/[.)?]$/.test(line) ? ' See' : ': see'} ${pathOf(command)} --help\n`);
        },
      });
  }
}

function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** An error as one line for the operator, with the remedy where one is known. */
export function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const line = message.trim().replaceAll(/\s*\n\s*/g, '; ');
  if (error instanceof ConfigError) return `invalid configuration: ${line}`;
  if (isStoreUnavailable(error)) {
    return `the store does not answer (${line}): see that it runs and that REDIS_URL is right, then run this again`;
  }
  if (line.startsWith('WRONGTYPE'))
    return `a key in the store is not what it should be: run ${adminCommand} fsck`;
  return line;
}
