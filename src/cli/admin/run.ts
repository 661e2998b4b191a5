import { adminCommand } from '../command-line.ts';
import type { Shell } from '../shell.ts';
import { addAudit } from './audit.ts';
import { createContext, type AdminCommand } from './context.ts';
import { createTool, interrupted } from '../tool.ts';
import { addCutover } from './cutover/cutover.ts';
import { addDeprecation } from './deprecation/deprecation.ts';
import { addFsck } from './fsck.ts';
import { addKey } from './key.ts';
import { addOrg } from './org.ts';
import { addCollection, addObject, addWallet } from './profile-data.ts';
import { addUpgrade } from './upgrade.ts';
import { addUsage } from './usage.ts';

/** The commands, in the order of the help. */
const additions: ((program: AdminCommand) => void)[] = [
  addOrg,
  addKey,
  addObject,
  addCollection,
  addWallet,
  addAudit,
  addFsck,
  addUpgrade,
  addUsage,
  addDeprecation,
  addCutover,
];

/** Runs the operator's tool. Returns the exit code; every error is one line with the remedy. */
export async function runAdmin(args: readonly string[], shell: Shell): Promise<number> {
  const context = createContext(shell);
  const { program, run } = createTool(adminCommand, context, shell);
  program
    .description(
      "Manage the organizations, API keys and deprecation of Profile Bridge, in the service's Redis.",
    )
    // In `usage retire-check --org acme`, the option is that of retire-check, not that of usage.
    .enablePositionalOptions()
    .examples(
      'org set acme --username-min 3 --username-max 20',
      'key create --org acme --role player --user u-1 --client ios-4.2',
      'fsck',
    )
    .addHelpText('after', programHelp);
  for (const add of additions) add(program);
  const { signal } = shell;
  try {
    return await run(args, (error) =>
      signal.aborted && error === signal.reason ? interrupted() : undefined,
    );
  } finally {
    await context.close();
  }
}

const programHelp = `
It connects to REDIS_URL, or without it to the embedded Redis under DATA_DIR, whether or not the service is running.
Every command takes --help, with examples, and --json.
Exit codes: 0 done, 1 ran and found a problem, 2 wrong usage or configuration, 130 interrupted.`;
