import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Releasers } from '../../../src/lib/releasers.ts';
import { startBridgeProcess } from '../../../test/support/processes.ts';

/** A server in a separate process, which may start further ones. */
export interface Served {
  url: string;
  pid: number;
  stop: () => Promise<void>;
}

/** A server that is stopped with the other resources. */
export async function kept(releasers: Releasers, serving: Promise<Served>): Promise<Served> {
  const server = await serving;
  releasers.onClose('server', server.stop);
  return server;
}

/** Starts a server's file, given relative to this one, and waits until it has printed its URL (http.ts). */
export async function serve(file: string, environment: Record<string, string>): Promise<Served> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  // Not the caller's environment, which may be set up for a bridge; TypeScript runs in the same way as this process.
  const child = spawn(process.execPath, [...process.execArgv, path], {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    exited.then(() => reject(new Error(`${file} did not start`)), reject);
  });
  return {
    url,
    pid: child.pid ?? 0,
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** Starts the compiled bridge on a Redis, on free ports and with a folder of its own. */
export async function serveBridge(
  redisUrl: string,
  environment: Record<string, string> = {},
): Promise<Served> {
  const variables = { REDIS_URL: redisUrl, ...environment };
  const { url, pid, stop } = await startBridgeProcess(variables, ['dist/src/main.js']);
  return { url, pid: pid(), stop };
}
