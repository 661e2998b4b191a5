import { InvalidArgumentError, Option, type Command } from 'commander';
import { nameFault } from '../../domain/usernames.ts';
import { parseInstant } from '../../lib/iso8601.ts';
import { adminCommand, examplesText } from '../command-line.ts';
import { walletForm } from '../../domain/wallets.ts';

/** An id: not empty, well-formed, no control characters, at most 256 code points, like those of records. */
export function parseId(value: string): string {
  const fault = nameFault(value);
  if (fault !== undefined) throw new InvalidArgumentError(`It ${fault}.`);
  return value;
}

export function parseWholeNumber(value: string): number {
  if (!/^\d{1,9}$/.test(value)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(value);
}

export function parseHttpUrl(value: string): string {
  const isUrl = /^https?:\/\//i.test(value) && URL.canParse(value) && !/[\p{Cc}\s]/u.test(value);
  if (!isUrl || !value.isWellFormed()) {
    throw new InvalidArgumentError('It must be an http or https URL such as https://cdn.example/1.png.');
  }
  return value;
}

export function parseWallet(value: string): string {
  if (!walletForm.test(value)) {
    throw new InvalidArgumentError('It must be 0x and 40 hexadecimal digits.');
  }
  return value;
}

/** A time to come, in ms. */
export function parseFutureInstant(value: string): number {
  const parsed = parseInstant(value);
  if (parsed.kind === 'invalid') {
    throw new InvalidArgumentError('It must be an ISO 8601 time with a zone such as 2027-01-31T12:00:00Z.');
  }
  if (parsed.value <= Date.now()) throw new InvalidArgumentError('It must lie in the future.');
  return parsed.value;
}

/** `--org`, which must be given. */
export function organizationOption(): Option {
  return idOption('--org <organization>', 'organization id').makeOptionMandatory();
}

export function idOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser(parseId);
}

/** Ends a command's definition: `--json`, and the examples in its help, without the tool's own name. */
export function withExamples(command: Command, examples: readonly string[]): Command {
  return addExamples(command.option('--json', 'print JSON, for machines'), examples);
}

/** Examples in the help of a group of commands. */
export function addExamples(group: Command, examples: readonly string[]): Command {
  return group.addHelpText('after', examplesText(adminCommand, examples));
}
