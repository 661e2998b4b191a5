import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { residentMiB } from './processes.ts';

/** A compiled bridge in a process of its own. */
export interface Spawned {
  url: string;
  pid: number;
  /** From its start until it answered /readyz with 200. */
  readyMs: number;
  /** Its resident memory in MiB, where the machine tells. */
  residentMiB: () => number | undefined;
  /** SIGTERM unless said otherwise; resolves once it has ended. */
  stop: (signal?: NodeJS.Signals) => Promise<void>;
}

/** Starts dist/src/main.js on a Redis and waits until it is ready. */
export async function spawnBridge(redisUrl: string): Promise<Spawned> {
  const dataDir = await mkdtemp(join(tmpdir(), 'pb-bench-'));
  const begun = performance.now();
  const child = spawn(process.execPath, [fileURLToPath(new URL('../../dist/src/main.js', import.meta.url))], {
    env: {
      PATH: process.env['PATH'],
      REDIS_URL: redisUrl,
      DATA_DIR: dataDir,
      PORT: '0',
      ADMIN_PORT: '0',
      LOG_LEVEL: 'info',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      // The admin port tells its address too.
      const found = line.includes('"message":"listening"') && /"url":"(http:[^"]+)"/.exec(line)?.[1];
      if (found) resolve(found);
    });
    exited.then(() => reject(new Error('the bridge did not start')), reject);
  });
  while ((await fetch(`${url}/readyz`)).status !== 200);
  const readyMs = performance.now() - begun;
  const pid = child.pid ?? 0;
  return {
    url,
    pid,
    readyMs,
    residentMiB: () => residentMiB(pid),
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal);
      await exited;
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
