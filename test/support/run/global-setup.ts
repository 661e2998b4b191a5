import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chooseRedis } from './choose-redis.ts';

/**
 * One Redis for the whole run; its address reaches the test files as TEST_REDIS_URL. One folder, too, for all temporary
 * files of the run: what a test, or a process that it kills, leaves behind goes with it. There the program is compiled to,
 * for the processes that tests start.
 */
export default async function globalSetup(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pb-'));
  // As the system's: the database servers run as users of their own.
  chmodSync(folder, 0o1777);
  process.env['TMPDIR'] = folder;
  process.env['TEST_PROGRAM'] = compileTo(folder);
  const chosen = await chooseRedis(process.env);
  process.stdout.write(`\ntest Redis: ${chosen.description}\n`);
  process.env['TEST_REDIS_URL'] = chosen.url;
  (globalThis as { endTestRun?: () => Promise<void> }).endTestRun = async () => {
    await chosen.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
}

/** Types are checked by `npm run check`. */
function compileTo(folder: string): string {
  const program = join(folder, 'program');
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  const { status } = spawnSync(process.execPath, ['scripts/build.mjs', program, '--noCheck'], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the program cannot be compiled');
  return program;
}
