import { readConfig, type Config } from '../../config.ts';
import { createReleasers } from '../../lib/releasers.ts';
import { printable } from '../../lib/system/terminal.ts';
import { reachStore } from '../../redis/connection/open.ts';
import { organizationBase } from '../../redis/keys.ts';
import { findSettings } from '../../redis/organizations.ts';
import { adminCommand } from '../command-line.ts';
import { readerGone, type Shell } from '../shell.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

/** What the commands share. */
export type AdminContext = ReturnType<typeof createContext>;

/** The outcome of a command. `json` is for machines, `text` for people; what would not be printable is escaped. */
export type Report =
  | { kind: 'done'; json?: unknown; text?: string }
  | { kind: 'problem'; message: string; json?: unknown; text?: string }
  | { kind: 'usage'; message: string }
  | { kind: 'interrupted'; message: string };

/** A report with exit code 0. */
export function done(json: unknown, text: string): Report {
  return { kind: 'done', json, text };
}

/** A report with exit code 1: one line with the remedy, and what else to print. */
export function problem(message: string, output: { json?: unknown; text?: string } = {}): Report {
  return { kind: 'problem', message, ...output };
}

/** A report with exit code 2. */
export function wrongUsage(message: string): Report {
  return { kind: 'usage', message };
}

const exitCodes: Record<Report['kind'], number> = { done: 0, problem: 1, usage: 2, interrupted: 130 };

export function createContext({ env, out, err, signal }: Shell) {
  const releasers = createReleasers();
  let read: Config | undefined;
  let opening: Promise<RedisClient> | undefined;
  let exitCode = 0;
  const config = (): Config => (read ??= readConfig(env));
  const note = (line: string): void => void err.write(`${printable(line)}\n`);
  const open = async (options: { anyLayout?: boolean } = {}) => {
    const { keyPrefix } = config();
    return { store: await (opening ??= reachStore(config(), releasers, { ...options, signal })), keyPrefix };
  };
  return {
    /** Prints on standard output what is not part of a report. */
    out,
    /** Prints a line on standard error. */
    note,
    /** Aborted to stop the tool. */
    signal,
    /** Throws a ConfigError. */
    config,
    /** The service's store, opened on first use; `anyLayout`: even if its data must be upgraded first. */
    open,
    /** The same, with the base of all keys of an organization; throws an UnknownOrganizationError if there is none. */
    existingOrganization: async (id: string) => {
      const { store, keyPrefix } = await open();
      const settings = await findSettings(store, keyPrefix, id);
      if (settings === undefined) throw new UnknownOrganizationError(id);
      return { store, keyPrefix, base: organizationBase(keyPrefix, id), settings };
    },
    /** Prints the report of a command and sets the exit code. */
    finish: (report: Report, { json: isJson = false }: { json?: boolean }): void => {
      exitCode = exitCodes[report.kind];
      const { json, text = '' } = { json: undefined, text: undefined, ...report };
      if (isJson && json !== undefined) out(`${JSON.stringify(json, null, 2)}\n`);
      if (!isJson && text !== '') out(`${text.split('\n').map(printable).join('\n')}\n`);
      const isQuiet = report.kind === 'interrupted' && signal.reason === readerGone;
      if (report.kind !== 'done' && !isQuiet) note(`error: ${report.message}`);
    },
    exitCode: (): number => exitCode,
    close: releasers.close,
  };
}

/** The message is one line with the remedy. */
export class UnknownOrganizationError extends Error {
  constructor(id: string) {
    super(
      `there is no organization ${JSON.stringify(id)}: create it with ${adminCommand} org set, or see ${adminCommand} org list`,
    );
  }
}
