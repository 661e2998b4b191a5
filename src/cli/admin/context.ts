import { readConfig, type Config } from '../../config.ts';
import { createReleasers } from '../../lib/releasers.ts';
import { printable } from '../../lib/system/terminal.ts';
import { openStoreForTool } from '../../redis/open.ts';
import { organizationBase } from '../../redis/keys.ts';
import { findSettings } from '../../redis/organizations.ts';
import { adminCommand } from '../command-line.ts';
import type { Shell } from '../shell.ts';
import type { createTool } from '../tool.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

/** What the commands share. */
export type AdminContext = ReturnType<typeof createContext>;

/** A command of the operator's tool, or a group of them. */
export type AdminCommand = ReturnType<typeof createTool<AdminContext>>['program'];

export function createContext(shell: Shell) {
  const { env, err, signal } = shell;
  const releasers = createReleasers();
  let read: Config | undefined;
  let opening: Promise<RedisClient> | undefined;
  const config = (): Config => (read ??= readConfig(env));
  const open = async (options: { anyLayout?: boolean } = {}) => {
    const { keyPrefix } = config();
    return {
      store: await (opening ??= openStoreForTool(config(), releasers, { ...options, signal })),
      keyPrefix,
    };
  };
  return {
    ...shell,
    /** Prints a line on standard error. */
    note: (line: string): void => void err.write(`${printable(line)}\n`),
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
