import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Ran } from '../../test/support/admin.ts';

/** Runs a command of `profile-bridge` as on a shell without quotes, in a process of its own; `program` runs it. */
export async function runCommand(
  program: readonly string[],
  command: string,
  environment: Record<string, string>,
): Promise<Ran> {
  const child = spawn(process.execPath, [...program, ...command.split(' ')], {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const killWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithUs);
  const ran: Ran = { code: -1, out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (ran.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (ran.err += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  process.off('exit', killWithUs);
  return { ...ran, code: code ?? -1 };
}
