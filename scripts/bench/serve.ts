import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A server in a process of its own. */
export interface Served {
  url: string;
  /** The processor time it has used, in seconds; undefined where the machine does not tell. */
  cpuSeconds: () => number | undefined;
  stop: () => Promise<void>;
}

/**
 * Starts a server's file, given relative to this one, and waits until a line of JSON on its standard output says
 * `listening`, and at which `url`.
 */
export async function serve(file: string, environment: Record<string, string>): Promise<Served> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  // Nothing of the caller's environment, which may be set up for another bridge; TypeScript runs as we do.
  const child = spawn(process.execPath, [...(path.endsWith('.ts') ? process.execArgv : []), path], {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const found = addressIn(line);
      if (found !== undefined) resolve(found);
    });
    exited.then(() => reject(new Error(`${file} did not start`)), reject);
  });
  return {
    url,
    cpuSeconds: () => cpuSeconds(child.pid ?? 0),
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

function addressIn(line: string): string | undefined {
  if (!line.startsWith('{')) return undefined;
  const { message, url } = JSON.parse(line) as { message?: string; url?: string };
  return message === 'listening' ? url : undefined;
}

/** From Linux' /proc, whose ticks are hundredths of a second. */
function cpuSeconds(pid: number): number | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return undefined;
  }
}
