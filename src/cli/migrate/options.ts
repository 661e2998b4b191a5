import { InvalidArgumentError, Option, type Command } from 'commander';
import { readInstant } from '../../lib/iso8601.ts';
import { parseId, wholeNumber } from '../command-line.ts';
import { UsageError } from '../../migration/errors.ts';
import { entityNames, isEntity, type Entity } from '../../migration/records/records.ts';

/** Which source, what of it, and how it is read. */
export function addSourceOptions<Own extends Command>(command: Own): Own {
  return (
    command
      .requiredOption(
        '--source <place>',
        'a folder, a file, or a PostgreSQL, MySQL or MariaDB database URL',
        notEmpty,
      )
      .option(
        '--mapping <file>',
        'YAML file that maps the source to records; required for databases',
        notEmpty,
      )
      .option(
        '--entities <list>',
        `only these entities, separated by commas: ${entityNames.join(', ')}`,
        parseEntities,
      )
      .option('--org <organization>', 'only this organization', parseId)
      .option(
        '--as-of <time>',
        'for files, also those of --copy-pictures, during a cut-over: when their export began, by the clock of Redis, such as 2026-01-31T18:00:00Z; what the bridge has taken over from the legacy service since is left alone',
        parseInstant,
      )
      .addOption(runOption())
      // More at once would hold Redis for longer than other requests should wait.
      .option('--batch <records>', 'records per call to Redis', wholeNumber(1, 2000), 500)
      .option('--concurrency <calls>', 'calls to Redis in progress at once', wholeNumber(1, 64), 4)
      .option('--report <file>', 'write every problem and warning to this file, as NDJSON', notEmpty)
  );
}

/** What to do about problems, and about records that the source no longer has, or that are newer in Redis. */
export function addWriteOptions<Own extends Command>(command: Own): Own {
  return command
    .addOption(
      new Option(
        '--on-conflict <rule>',
        'if records have problems: write nothing, skip those records, or drop only their usernames',
      )
        .choices(['abort', 'skip', 'drop-username'])
        .default('abort'),
    )
    .option('--prune', 'remove what is no longer in the source, except what was written through the bridge')
    .option(
      '--prune-at-most <records>',
      'let --prune remove up to this many records (default: a tenth of each entity)',
      wholeNumber(0, 999_999_999),
    )
    .option(
      '--trust-source',
      'also overwrite profiles with a later updatedAt in Redis, unless changed through the bridge',
    );
}

export function runOption(what = "the run's name (default: derived from the source)"): Option {
  return new Option('--run <name>', what).argParser(parseRunName);
}

/** Options that do nothing without another one. */
const needs = {
  lag: 'follow',
  fullEvery: 'follow',
  pruneAtMost: 'prune',
  allowPrivateAddresses: 'copyPictures',
} as const;

/** Throws a UsageError if an option was given without the one that it needs: it would silently do nothing. */
export function requireNeeded(flags: Readonly<Record<string, unknown>>): void {
  for (const [option, needed] of Object.entries(needs)) {
    if (flags[option] === undefined || flags[needed] !== undefined) continue;
    const [given, missing] = [nameOf(option), nameOf(needed)];
    throw new UsageError(`${given} needs ${missing}: add it, or leave ${given} out`);
  }
}

function nameOf(option: string): string {
  return `--${option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

const milliseconds: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time such as `10s`, `5m` or `1h`, in ms. */
export function parseDuration(value: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,4})([smhd])$/.exec(value) ?? [];
  if (count !== undefined) return Number(count) * (milliseconds[unit] ?? 0);
  throw new InvalidArgumentError('It must be a time such as 10s, 5m or 1h.');
}

export function notEmpty(value: string): string {
  if (value !== '') return value;
  throw new InvalidArgumentError('It must not be empty.');
}

function parseInstant(value: string): number {
  const instant = readInstant(value);
  if (typeof instant !== 'number') {
    throw new InvalidArgumentError('It must be a date and a time with a zone, such as 2026-01-31T18:00:00Z.');
  }
  return instant;
}

function parseRunName(value: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value)) return value;
  throw new InvalidArgumentError(
    'It must be 1 to 64 letters, digits, ".", "_" and "-", and begin with a letter or a digit.',
  );
}

/** The entities of a list, each once. */
export function parseEntities(value: string): Entity[] {
  const words = value
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  const entities = words.map((word) => {
    if (isEntity(word)) return word;
    throw new InvalidArgumentError(
      `There is no entity ${JSON.stringify(word)}: the entities are ${entityNames.join(', ')}.`,
    );
  });
  if (entities.length === 0) throw new InvalidArgumentError('Name at least one.');
  return [...new Set(entities)];
}
