import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { succeed } from '../pipe.ts';

/** What one call of the migration tool took. */
export interface Call {
  /** Wall clock, from the start of the process to its end. */
  seconds: number;
  /** The most memory that the process had, in MB (10^6 bytes). */
  peakMegabytes: number;
}

// Runs in the tool's process, and reports on exit what it has used.
const tellPeak =
  'data:text/javascript,import{writeSync}from"node:fs";process.on("exit",()=>writeSync(3,String(process.resourceUsage().maxRSS)))';

/** Runs the compiled `profile-bridge migrate`. `meanwhile` may end it early. */
export async function migrate(
  redisUrl: string,
  args: readonly string[],
  meanwhile?: (tool: ChildProcess) => Promise<void>,
): Promise<Call> {
  const startedAt = performance.now();
  const tool = spawn(
    process.execPath,
    ['--import', tellPeak, 'dist/scripts/profile-bridge.js', 'migrate', ...args, '--json'],
    { env: { ...process.env, REDIS_URL: redisUrl }, stdio: ['ignore', 'ignore', 'inherit', 'pipe'] },
  );
  let peak = '';
  tool.stdio[3]?.on('data', (chunk: Buffer) => (peak += chunk.toString()));
  const closed = once(tool, 'close') as Promise<[number | null]>;
  await meanwhile?.(tool);
  const [code] = await closed;
  if (code !== 0 && meanwhile === undefined) throw new Error(`migrate ${args.join(' ')} ended with ${code}`);
  return {
    seconds: (performance.now() - startedAt) / 1000,
    peakMegabytes: Math.round((Number(peak) * 1024) / 1e6),
  };
}

/** Runs a pipeline of programs by the shell, with these variables; how many seconds that took. */
export async function runShell(script: string, variables: Record<string, string>): Promise<number> {
  const startedAt = performance.now();
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await succeed(shell, 'the pipeline');
  return (performance.now() - startedAt) / 1000;
}
