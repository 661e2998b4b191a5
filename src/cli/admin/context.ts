import { readConfig, type Config } from '../../config.ts';
import { createReleasers } from '../../lib/releasers.ts';
import { reachStore } from '../../redis/connection/open.ts';
import { organizationBase } from '../../redis/keys.ts';
import type { Store } from '../../redis/scripts.ts';

/** What the tool has around it; tests bring their own. */
export interface CliEnvironment {
  env: NodeJS.ProcessEnv;
  out: (text: string) => void;
  err: (text: string) => void;
  /** Aborted when the tool is to stop. */
  signal: AbortSignal;
}

/** What the commands share. */
export interface AdminContext extends Omit<CliEnvironment, 'env'> {
  /** Throws a ConfigError. */
  config: () => Config;
  /** The service's store, opened when first asked for; `anyLayout`: also where its data needs an upgrade. */
  store: (options?: { anyLayout?: boolean }) => Promise<Store>;
  /** The store, and what all keys of the organization begin with. */
  organization: (id: string) => Promise<{ store: Store; base: string }>;
  /** How a command ends: tells what came of it, and sets the exit code. */
  finish: (report: Report, options: { json?: boolean }) => void;
  exitCode: () => number;
  close: () => Promise<void>;
}

/** What came of a command. `json` is for machines, `text` for people. */
export type Report =
  | { kind: 'done'; json: unknown; text: string }
  /** Exit code 1. `message` is one line with the remedy; `json` and `text` are printed where there is more to tell. */
  | { kind: 'problem'; message: string; json?: unknown; text?: string }
  /** Exit code 2. */
  | { kind: 'usage'; message: string }
  | { kind: 'interrupted'; message: string };

const exitCodes: Record<Report['kind'], number> = { done: 0, problem: 1, usage: 2, interrupted: 130 };

export function createContext({ env, out, err, signal }: CliEnvironment): AdminContext {
  const releasers = createReleasers();
  let config: Config | undefined;
  let store: Promise<Store> | undefined;
  let exitCode = 0;

  const context: AdminContext = {
    out,
    err,
    signal,
    config: () => (config ??= readConfig(env)),
    store: async (options) => await (store ??= reachStore(context.config(), releasers, options)),
    organization: async (id) => ({
      store: await context.store(),
      base: organizationBase(context.config().keyPrefix, id),
    }),
    finish: (report, { json = false }) => {
      exitCode = exitCodes[report.kind];
      const shown = 'text' in report && report.text !== undefined && report.text !== '';
      if (json && 'json' in report) out(`${JSON.stringify(report.json, null, 2)}\n`);
      else if (!json && shown) out(`${report.text}\n`);
      if (report.kind !== 'done') err(`error: ${report.message}\n`);
    },
    exitCode: () => exitCode,
    close: releasers.close,
  };
  return context;
}

/** The problem of an organization that does not exist. */
export function unknownOrganization(id: string): Report {
  return {
    kind: 'problem',
    message: `there is no organization ${JSON.stringify(id)}: create it with org set, or see org list`,
  };
}
