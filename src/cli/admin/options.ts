import { InvalidArgumentError } from 'commander';
import { walletForm } from '../../domain/profile.ts';
import { parseInstant, type Parsed } from '../../lib/iso8601.ts';
import { parseId } from '../command-line.ts';

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

/** A time in the future, in ms. */
export function parseFutureInstant(value: string): number {
  const instant = parseTime(value);
  if (instant <= Date.now()) throw new InvalidArgumentError('It must be in the future.');
  return instant;
}

/** An ISO 8601 time, in ms. */
export const parseTime = argument(parseInstant);

/** A parser for an option's value. */
export function argument<Value>(parse: (text: string) => Parsed<Value>): (text: string) => Value {
  return (text) => {
    const parsed = parse(text);
    if (parsed.kind === 'invalid') throw new InvalidArgumentError(`${parsed.reason}.`);
    return parsed.value;
  };
}

/** The same for an option that may be repeated. */
export function repeatable<Value>(
  parse: (text: string) => Value,
): (text: string, before?: Value[]) => Value[] {
  return (text, before = []) => [...before, parse(text)];
}

/** `--org`, of commands on one organization, and of those that are on all without it. */
export const organizationOption = ['--org <organization>', 'organization id', parseId] as const;
export const onlyOrganization = ['--org <organization>', 'only this organization', parseId] as const;
