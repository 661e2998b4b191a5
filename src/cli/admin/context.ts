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

/** How a command ended. `json` is for machines, `text` for people; what would not be printable in it is escaped. */
export interface Report {
  exitCode: 0 | 1 | 2 | 130;
  json?: unknown;
  text?: string;
  /** One line with the remedy, unless the command is done. */
  error?: string;
}

export function done(json: unknown, text: string): Report {
  return { exitCode: 0, json, text };
}

/** For a command that ran and found a problem. */
export function problem(error: string, output: { json?: unknown; text?: string } = {}): Report {
  return { exitCode: 1, error, ...output };
}

export function wrongUsage(error: string): Report {
  return { exitCode: 2, error };
}

export function interrupted(error = 'interrupted'): Report {
  return { exitCode: 130, error };
}

export function createContext({ env, out, err, signal }: Shell) {
  const releasers = createReleasers();
  let read: Config | undefined;
  let opening: Promise<RedisClient> | undefined;
  let exitCode: Report['exitCode'] = 0;
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
      const { json, text = '', error } = report;
      exitCode = report.exitCode;
      if (isJson && json !== undefined) out(`${JSON.stringify(json, null, 2)}\n`);
      if (!isJson && text !== '') out(`${text.split('\n').map(printable).join('\n')}\n`);
      if (error !== undefined && !(exitCode === 130 && signal.reason === readerGone)) note(`error: ${error}`);
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
