import { runAdmin } from '../../../src/cli/admin/run.ts';
import type { Shell } from '../../../src/cli/shell.ts';

export interface Ran {
  code: number;
  out: string;
  err: string;
}

/** Runs the operator's tool in this process; the command as on a shell without quotes, or its parts. */
export async function runTool(
  env: NodeJS.ProcessEnv,
  command: string | readonly string[],
  signal = new AbortController().signal,
): Promise<Ran> {
  const args = typeof command === 'string' ? command.split(' ') : command;
  return await capture((shell) => runAdmin(args, shell), env, signal);
}

/** Runs a tool, and keeps what it prints. */
export async function capture(
  run: (shell: Shell) => Promise<number>,
  env: NodeJS.ProcessEnv,
  signal = new AbortController().signal,
): Promise<Ran> {
  const ran: Ran = { code: -1, out: '', err: '' };
  ran.code = await run({
    env,
    out: (text) => {
      ran.out += text;
    },
    err: {
      write: (text) => {
        ran.err += text;
      },
    },
    signal,
  });
  return ran;
}
