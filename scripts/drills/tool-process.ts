import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Ran } from '../../test/support/tools/admin.ts';
import { endWithUs } from '../../test/support/processes.ts';

/** The operator's tool as a process, which ends with this one at the latest. */
export type ToolProcess = ReturnType<typeof startTool>;

/** `program` is what Node.js is started with to run the tool. */
export function startTool(
  program: readonly string[],
  args: readonly string[],
  environment: Record<string, string>,
) {
  const child = spawn(process.execPath, [...program, ...args], {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithUs(child);
  const ran: Ran = { code: -1, out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (ran.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (ran.err += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => ({ ...ran, code: Number(code ?? -1) }));
  return {
    pid: (): number => child.pid ?? 0,
    kill: async (): Promise<void> => {
      child.kill('SIGKILL');
      await ended;
    },
    ended,
  };
}
