import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { programOf } from './run/program.ts';
import { startRedis, unusedPort, type RedisProcess } from './redis.ts';

/** A server that can be killed as by a power cut, paused, and started again at the same address with its data. */
export interface Server {
  url: string;
  /** Of the process that runs now. */
  pid: () => number;
  kill: () => Promise<void>;
  /** After `kill`; resolves once it answers. */
  restart: () => Promise<void>;
  stop: () => Promise<void>;
}

/** Stops a process's clock: it holds its connections, and answers nothing, until `resume`. */
export function pause(server: Pick<Server, 'pid'>): void {
  process.kill(server.pid(), 'SIGSTOP');
}

export function resume(server: Pick<Server, 'pid'>): void {
  process.kill(server.pid(), 'SIGCONT');
}

/** A redis-server that writes everything to disk before it answers. */
export async function startDurableRedis(): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'drill-redis-'));
  const port = await unusedPort();
  const start = async (): Promise<RedisProcess> =>
    await startRedis(['--port', String(port), '--appendonly', 'yes', '--appendfsync', 'always'], folder);
  let server = await start();
  return {
    url: server.url,
    pid: () => server.pid,
    kill: async () => await server.stop(),
    restart: async () => {
      server = await start();
    },
    stop: async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A bridge on its own port; `program` is what Node.js is started with. */
export async function startBridgeProcess(
  environment: Record<string, string>,
  program: readonly string[] = programOf('src/main'),
): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'drill-bridge-'));
  const port = String(await unusedPort());
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, program, {
      env: {
        PATH: process.env['PATH'],
        DATA_DIR: folder,
        PORT: port,
        ADMIN_PORT: '0',
        LOG_LEVEL: 'info',
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    await untilListening(child);
    child.once('exit', reportEnd);
    return child;
  };
  let child = await start();
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.off('exit', reportEnd);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    pid: () => child.pid ?? 0,
    kill,
    restart: async () => {
      child = await start();
    },
    stop: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** For a bridge that nobody here has killed. */
function reportEnd(code: number | null, signal: NodeJS.Signals | null): void {
  process.stderr.write(`a bridge ended by itself, with ${signal ?? `exit code ${code}`}\n`);
}

/** Kills a process at the end of this one. */
export function endWithUs(child: ChildProcess): void {
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
}

async function untilListening(child: ChildProcess): Promise<void> {
  endWithUs(child);
  child.stderr?.on('data', (chunk: Buffer) => process.stderr.write(chunk));
  await new Promise<void>((resolve, reject) => {
    if (child.stdout !== null) {
      createInterface(child.stdout).on('line', (line) => {
        if (line.includes('"listening"')) resolve();
        if (line.includes('"level":"error"')) process.stderr.write(`${line}\n`);
      });
    }
    child.once('exit', (code) =>
      reject(new Error(`the bridge ended (${code}) at its start; its messages are above`)),
    );
  });
}
