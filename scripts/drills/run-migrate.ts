import { runMigrate } from '../../src/cli/migrate/run.ts';
import type { Ran } from '../../test/support/admin.ts';

/** Runs the migration tool in this process. */
export async function runMigrateTool(env: NodeJS.ProcessEnv, args: readonly string[]): Promise<Ran> {
  const ran: Ran = { code: -1, out: '', err: '' };
  ran.code = await runMigrate(args, {
    env: { PUBLIC_BASE_URL: 'https://bridge.example.com', ...env },
    out: (text) => {
      ran.out += text;
    },
    err: {
      write: (text) => {
        ran.err += text;
      },
    },
    signal: new AbortController().signal,
  });
  return ran;
}
