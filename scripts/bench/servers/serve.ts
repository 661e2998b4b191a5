import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Releasers } from '../../../src/lib/releasers.ts';
import { cpuSeconds, residentMiB } from './processes.ts';

/** A server in a separate process, which may start further ones. */
export interface Served {
  url: string;
  /** The processor time that all have used, in seconds; undefined if the machine does not tell. */
  cpuSeconds: () => number | undefined;
  /** The resident memory of all, in MiB; undefined if the machine does not tell. */
  residentMiB: () => number | undefined;
  stop: () => Promise<void>;
}

/** A server that is stopped with the other resources. */
export async function kept(releasers: Releasers, serving: Promise<Served>): Promise<Served> {
  const server = await serving;
  releasers.onClose('server', server.stop);
  return server;
}

/**
 * Starts a server's file, given relative to this one, and waits until a line of JSON on its standard output says
 * `listening`, and at which `url`.
 */
export async function serve(file: string, environment: Record<string, string>): Promise<Served> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  // Not the caller's environment, which may be set up for another bridge; TypeScript runs in the same way as this
  // process.
  const child = spawn(process.execPath, [...(path.endsWith('.ts') ? process.execArgv : []), path], {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const found = addressIn(line, child.pid);
      if (found !== undefined) resolve(found);
    });
    exited.then(() => reject(new Error(`${file} did not start`)), reject);
  });
  return {
    url,
    cpuSeconds: () => cpuSeconds(child.pid ?? 0),
    residentMiB: () => residentMiB(child.pid ?? 0),
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
  const dataDir = await mkdtemp(join(tmpdir(), 'pb-bench-'));
  const served = await serve('../../../dist/src/main.js', {
    REDIS_URL: redisUrl,
    DATA_DIR: dataDir,
    PORT: '0',
    ADMIN_PORT: '0',
    LOG_LEVEL: 'info',
    ...environment,
  });
  return {
    ...served,
    stop: async () => {
      await served.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** The output of the server itself, not of its workers. */
function addressIn(line: string, server: number | undefined): string | undefined {
  if (!line.startsWith('{')) return undefined;
  const { message, url, pid } = JSON.parse(line) as { message?: string; url?: string; pid?: number };
  return message === 'listening' && (pid ?? server) === server ? url : undefined;
}
