import { runMigrate } from '../../src/cli/migrate/run.ts';
import { capture, type Ran } from '../../test/support/tools/admin.ts';

/** Runs the migration tool in this process. */
export async function runMigrateTool(env: NodeJS.ProcessEnv, args: readonly string[]): Promise<Ran> {
  return await capture((shell) => runMigrate(args, shell), {
    PUBLIC_BASE_URL: 'https://bridge.example.com',
    ...env,
  });
}
