import { runAdmin } from '../../src/cli/admin/run.ts';

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
  const ran: Ran = { code: -1, out: '', err: '' };
  ran.code = await runAdmin(typeof command === 'string' ? command.split(' ') : command, {
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
