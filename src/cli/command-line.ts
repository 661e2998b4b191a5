import { Help, InvalidArgumentError, type Command, type Option } from 'commander';
import { ConfigError } from '../config.ts';
import { nameFault } from '../domain/usernames.ts';
import { passwordSetting } from '../lib/passwords.ts';
import { wrongTypeOf } from '../redis/connection/client.ts';
import { isStoreUnavailable, permissionRefused } from '../redis/connection/connect.ts';

/** The names of the tools in examples and remedies. */
export const adminCommand = 'profile-bridge admin';
export const migrateCommand = 'profile-bridge migrate';

/** The passwords in arguments that are quoted because they were not understood, such as a URL after `--sorce=`. */
const passwords = new RegExp(String.raw`(?<=['=]\S*?):.*@|${passwordSetting}[^']*`, 'gi');

/**
 * Makes a program and all its commands report an error on one line that refers to their help, and throw it; and the help
 * say which options are required.
 */
export function configureErrorsAndHelp(
  program: Command,
  out: (text: string) => void,
  err: (text: string) => void,
): void {
  for (const command of commandsOf(program)) {
    if (command.commands.length > 0) addHelpCommand(command);
    requireLate(command);
  }
  for (const command of commandsOf(program)) {
    command
      .exitOverride()
      .showSuggestionAfterError()
      .configureHelp({ optionDescription })
      .configureOutput({
        writeOut: out,
        writeErr: err,
        outputError: (text, write) => {
          const line = text
            .trim()
            .replaceAll(/[\p{Cc}\s]+/gu, ' ')
            .replaceAll(passwords, '…');
          write(`${line}${/[.)?]$/.test(line) ? ' See' : ': see'} ${pathOf(command)} --help\n`);
        },
      });
  }
}

/** In place of commander's own, which answers an unknown command with the whole help and no error. */
function addHelpCommand(group: Command): void {
  group
    .command('help [command...]')
    .description('display help for command')
    .action((names: string[]) => {
      let found = group;
      for (const name of names) {
        if (found.commands.length === 0) break;
        const next = found.commands.find((command) => command.name() === name);
        found = next ?? found.error(`error: unknown command '${name}'`);
      }
      found.help();
    });
}

const required = new WeakSet<Option>();

/** Commander looks for required options before unknown ones: to `--sorce` it would say that --source is missing. */
function requireLate(command: Command): void {
  const options = command.options.filter(({ mandatory }) => mandatory);
  for (const option of options) {
    required.add(option);
    option.mandatory = false;
  }
  command.hook('preAction', () => {
    const missing = options.find((option) => command.getOptionValue(option.attributeName()) === undefined);
    if (missing !== undefined) command.error(`error: required option '${missing.flags}' not specified`);
  });
}

const standardHelp = new Help();

function optionDescription(option: Option): string {
  return `${standardHelp.optionDescription(option)}${required.has(option) ? ' (required)' : ''}`;
}

function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** The rules of ids in migrated records: not empty, well-formed, no control characters, at most 256 code points. */
export function parseId(value: string): string {
  const fault = nameFault(value);
  if (fault !== undefined) throw new InvalidArgumentError(`It ${fault}.`);
  return value;
}

/** A parser of whole numbers in this range, for an option's value. */
export function wholeNumber(least: number, greatest?: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= (greatest ?? value)) return value;
    const range = greatest === undefined ? `of at least ${least}` : `from ${least} to ${greatest}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}

const storeFaults: [reply: RegExp, fault: string, remedy: string][] = [
  [/^OOM /, 'Redis is full', 'raise its maxmemory'],
  [/^MISCONF /, 'Redis cannot save its data', 'see its log'],
  [
    /^NOREPLICAS /,
    'Redis has too few replicas',
    'start them, or lower WRITE_REPLICAS or min-replicas-to-write',
  ],
  [
    permissionRefused,
    'the user of REDIS_URL lacks a permission',
    'give it the permissions that src/redis/README.md lists under "Permissions"',
  ],
];

/** What the client of Redis says of itself, in words that mean nothing to an operator. */
const clientClosed =
  /^(Reached the max retries|Stream isn't writeable|Command aborted due to connection close)/;

/** Why the store has refused a command or not answered it, with the remedy; `otherwise`, where the reply does not say. */
export function storeFaultOf(
  message: string,
  otherwise: readonly [fault: string, remedy: string],
): [fault: string, remedy: string] {
  const reason = clientClosed.test(message) ? 'connection closed' : message;
  const [, fault, remedy] = storeFaults.find(([reply]) => reply.test(reason)) ?? ['', ...otherwise];
  return [`${fault} (${reason})`, remedy];
}

/** An error as one line for the operator, with the remedy if one is known. */
export function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const line = message.trim().replaceAll(/\s*\n\s*/g, '; ');
  if (error instanceof ConfigError) return `invalid configuration: ${line}`;
  if (isStoreUnavailable(error)) {
    const unavailable = [
      'Redis is unavailable',
      'check that it is running and that REDIS_URL is right',
    ] as const;
    return `${storeFaultOf(line, unavailable).join(': ')}, then run this again`;
  }
  const wrongType = wrongTypeOf(error);
  if (wrongType === undefined) return line;
  if (wrongType.key === undefined) return `a key in Redis has the wrong type: run ${adminCommand} fsck`;
  return `remove the key ${wrongType.key}, which has the wrong type, then run ${adminCommand} fsck`;
}
