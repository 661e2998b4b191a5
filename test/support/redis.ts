import { spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The Redis of this run, shared by all test files: never flush, pause, stop or reconfigure it. */
export function testRedisUrl(): string {
  const url = process.env['TEST_REDIS_URL'];
  if (url === undefined) throw new Error('no test Redis: run the tests by npm test');
  return url;
}

/** A KEY_PREFIX nobody else uses, so that tests sharing one Redis do not see each other. */
export function freshPrefix(): string {
  return `${process.env['TEST_PREFIX'] ?? ''}${randomBytes(6).toString('hex')}:`;
}

/** What the program and its tools need to use the run's Redis, or another, under this prefix. */
export function environmentFor(keyPrefix: string, redisUrl = testRedisUrl()): Record<string, string> {
  return { REDIS_URL: redisUrl, KEY_PREFIX: keyPrefix, ALLOW_EVICTION: '1' };
}

export interface RedisProcess {
  url: string;
  host: string;
  port: number;
  /** Of the redis-server itself: may be killed or paused by the test. */
  pid: number;
  /** Kills it (also when paused or already dead) and removes its folder. */
  stop: () => Promise<void>;
}

/**
 * Starts a private redis-server on 127.0.0.1 (no persistence, unless `args` say so) and resolves once it
 * answers PING. It ends with `stop`, or with this process. `args` as on redis-server's command line;
 * `--port N` chooses the port, otherwise an unused one is taken. A `folder` of the caller's keeps the data.
 */
export async function startRedis(args: readonly string[] = [], folder?: string): Promise<RedisProcess> {
  const chosen = args.lastIndexOf('--port');
  if (chosen !== -1) return await startOn(Number(args[chosen + 1]), args, folder);
  return await untilPortsAreFree(async () => await startOn(await unusedPort(), args, folder));
}

/** Starts a server on ports that were unused when they were chosen, and on others if somebody else was faster. */
export async function untilPortsAreFree<Server>(start: () => Promise<Server>): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (attempt === 3 || !String(error).includes('Address already in use')) throw error;
    }
  }
}

async function startOn(
  port: number,
  args: readonly string[],
  folder: string | undefined,
): Promise<RedisProcess> {
  const dir = folder ?? mkdtempSync(join(tmpdir(), 'pbtest-redis-'));
  const place = ['--port', String(port), '--bind', '127.0.0.1'];
  // A sentinel takes its file first, and knows nothing of persistence. A replica is not made to wait for others.
  const all = args.includes('--sentinel')
    ? [...args, ...place]
    : [...place, '--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0', ...args];
  const script = fileURLToPath(new URL('redis-process.sh', import.meta.url));
  const wrapper = spawn('sh', [script, folder === undefined ? 'remove' : 'keep', dir, ...all], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(wrapper, 'exit');
  const [pid] = await Promise.race([once(wrapper.stdout, 'data'), exited]);
  if (wrapper.exitCode !== null) throw new Error('no redis-server found: run npm run redis:install');
  // The server must not keep a finished test process alive.
  wrapper.unref();
  wrapper.stdout.destroy();
  (wrapper.stdin as unknown as { unref: () => void }).unref();
  const stop = async () => {
    wrapper.ref();
    wrapper.stdin.end();
    await exited;
  };
  const server = { url: `redis://127.0.0.1:${port}`, host: '127.0.0.1', port, pid: Number(pid), stop };
  const deadline = Date.now() + 60_000;
  while (!(await answersPing(port))) {
    if (Date.now() > deadline || !isRunning(server.pid)) {
      const log = readFileSync(join(dir, 'log'), 'utf8');
      await stop();
      throw new Error(`redis-server did not start:\n${log}`);
    }
  }
  return server;
}

/** Whether a process with this id exists and is not merely waiting to be reaped. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return process.platform !== 'linux';
  }
}

/**
 * A TCP port of 127.0.0.1 nobody listens on just now. It is below those that the system gives out by itself, so that no
 * connection or other server takes it before it is used, or while the process that uses it is restarted; and above the
 * last one that browsers and fetch refuse (10080).
 */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = randomInt(11_000, 32_768);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue;
      throw error;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}

/** One attempt, refused ones counting as "no" after a short breath. An answer of any kind is an answer. */
function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const finish = (answered: boolean) => {
      socket.destroy();
      if (answered) resolve(true);
      else setTimeout(resolve, 10, false);
    };
    socket.on('connect', () => socket.write('PING\r\n'));
    socket.on('data', () => finish(true));
    socket.on('error', () => finish(false));
    socket.setTimeout(1000, () => finish(false));
  });
}
