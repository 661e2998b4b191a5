import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { type Embedded, openEmbedded } from '../../../src/redis/connection/embedded.ts';
import { isRunning } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { openTestStore } from '../../support/store.ts';
import { useCleanup } from '../../support/use-store.ts';

const opened = useCleanup();

function folder(name = 'data'): string {
  const parent = mkdtempSync(join(tmpdir(), 'pb-embedded-'));
  opened.push(() => rmSync(parent, { recursive: true, force: true }));
  return join(parent, name);
}

function closing(embedded: Embedded): Embedded {
  opened.push(embedded.close);
  return embedded;
}

async function open(url: string): Promise<RedisClient> {
  const client = await openTestStore(url);
  opened.push(() => client.disconnect());
  return client;
}

async function pidOf(client: RedisClient): Promise<number> {
  return Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
}

/** A bridge in a process of its own, leader of its process group. */
function runBridge(dataDir: string, env: NodeJS.ProcessEnv = process.env) {
  const source = new URL('../../../src/redis/connection/embedded.ts', import.meta.url).href;
  const program = `
    const { openEmbedded } = await import(${JSON.stringify(source)});
    const opened = await openEmbedded({ dataDir: process.argv[1] }).catch((error) => error);
    console.log(opened.url ?? opened.message);
    if (opened.url) setInterval(() => {}, 1000);`;
  const bridge = spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', program, dataDir],
    { env: { ...env, NODE_OPTIONS: '' }, stdio: ['ignore', 'pipe', 'inherit'], detached: true },
  );
  opened.push(() => bridge.kill('SIGKILL'));
  return bridge;
}

const hasProgram = (name: string): boolean => spawnSync('which', [name]).status === 0;

/** A PATH with nothing but these programs. */
function pathOf(...programs: string[]): string {
  const bin = folder('bin');
  mkdirSync(bin);
  for (const name of programs) symlinkSync(execFileSync('which', [name]).toString().trim(), join(bin, name));
  return bin;
}

/** Makes it the flock of BusyBox, which cannot wait for a limited time. */
function refuseWaiting(flock: string): void {
  const real = readlinkSync(flock);
  rmSync(flock);
  writeFileSync(flock, `#!/bin/sh\n[ "$1" != -w ] && exec ${real} "$@"\n`, { mode: 0o755 });
}

/** One that has opened its Redis, at `url`. */
async function spawnBridge(
  dataDir: string,
  env?: NodeJS.ProcessEnv,
): Promise<{ bridge: ChildProcess; url: string }> {
  const bridge = runBridge(dataDir, env);
  const [line] = (await once(bridge.stdout, 'data')) as [Buffer];
  return { bridge, url: line.toString().trim() };
}

/** The running processes of a process group. */
function groupMembers(group: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && groupOf(pid) === group && isRunning(pid));
}

/** The process group of a process, according to /proc; undefined if it has ended. */
function groupOf(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[2]);
  } catch {
    return undefined;
  }
}

async function untilGone(pid: number): Promise<void> {
  await until(() => !isRunning(pid));
}

describe('the embedded Redis', () => {
  test('listens on a private socket alone, and never loses or evicts', async () => {
    const dataDir = folder();
    const { url } = closing(await openEmbedded({ dataDir }));
    const client = await open(url);
    const settings = async (name: string) => (await client.config('GET', name))[1];
    expect(await settings('port')).toBe('0');
    expect(await settings('appendonly')).toBe('yes');
    expect(await settings('appendfsync')).toBe('always');
    expect(await settings('maxmemory-policy')).toBe('noeviction');
    expect(statSync(join(dataDir, 'redis')).mode & 0o777).toBe(0o700);
    expect(url).toBe(`unix://${dataDir}/redis/redis.sock`);
  });

  test('keeps its data when closed, and its process ends', async () => {
    const dataDir = folder('a folder with "quotes", spaces, @, ?, # and %20');
    const first = await openEmbedded({ dataDir });
    const client = await open(first.url);
    await client.set('k', 'v');
    const pid = await pidOf(client);
    await first.close();
    await first.close();
    expect(isRunning(pid)).toBe(false);
    const again = closing(await openEmbedded({ dataDir }));
    expect(await (await open(again.url)).get('k')).toBe('v');
  });

  test('leaves no process behind when closed', async () => {
    const embedded = await openEmbedded({ dataDir: folder() });
    const group = groupOf(await pidOf(await open(embedded.url))) ?? 0;
    expect(groupMembers(group).length).toBeGreaterThan(1);
    await embedded.close();
    await Promise.all(groupMembers(group).map(untilGone));
    expect(groupMembers(group)).toEqual([]);
  });

  test('gets no signal once it has ended: its PID may belong to another process by then', async () => {
    const dir = folder();
    const bin = join(dir, 'bin');
    mkdirSync(bin, { recursive: true });
    // Its lock is free, as that of a server that has ended; but there is a process with its PID.
    const program = `process.on('SIGTERM', () => process.exit());
      console.error('unlocked', process.pid);
      setInterval(() => {}, 1000);`;
    const server = `#!/bin/sh\nexec 9>&-\nNODE_OPTIONS= exec "${process.execPath}" -e "${program}"\n`;
    writeFileSync(join(bin, 'redis-server'), server);
    chmodSync(join(bin, 'redis-server'), 0o755);
    const script = new URL('../../../src/redis/connection/embedded.sh', import.meta.url).pathname;
    const wrapper = spawn('sh', [script, dir, join(dir, 'socket')], {
      env: { ...process.env, PATH: `${bin}:${process.env['PATH']}` },
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    });
    await once(wrapper.stdout, 'data');
    const pid = await until(() =>
      Number(/unlocked (\d+)/.exec(readFileSync(join(dir, 'redis.log'), 'utf8'))?.[1]),
    );
    opened.push(() => isRunning(pid) && process.kill(pid, 'SIGKILL'));
    const group = groupOf(pid) ?? 0;
    expect(groupMembers(group)).toHaveLength(3);
    wrapper.stdin.end();
    await until(() => groupMembers(group).length < 3);
    expect(isRunning(pid)).toBe(true);
  });

  test('is started again when it is killed, keeping every answered write', async () => {
    const logged: [message: string, details: object][] = [];
    const log = { warn: (...entry: (typeof logged)[0]) => logged.push(entry) } as never;
    const { url } = closing(await openEmbedded({ dataDir: folder(), log }));
    const client = await open(url);
    await Promise.all(Array.from({ length: 500 }, (_, n) => client.set(`k${n}`, 'v')));
    for (let round = 0; round < 2; round++) {
      const pid = await pidOf(client);
      const back = new Promise((resolve) => {
        client.once('close', () => client.once('ready', resolve));
      });
      process.kill(pid, 'SIGKILL');
      await back;
      expect(await client.dbsize()).toBe(500);
      expect(await pidOf(client)).not.toBe(pid);
    }
    const killed = { status: 137, reason: 'it was killed, as by the system when memory is short' };
    const ended = ['the embedded Redis ended', killed];
    expect(logged).toEqual([ended, ended]);
  });

  test('that does not start again says why in the log', async () => {
    const dataDir = folder();
    const logged: [message: string, details: object][] = [];
    const log = { warn: () => {}, error: (...entry: (typeof logged)[0]) => logged.push(entry) } as never;
    const client = await open(closing(await openEmbedded({ dataDir, log })).url);
    await client.set('k', 'v');
    const pid = await pidOf(client);
    writeFileSync(join(dataDir, 'redis/appendonlydir/appendonly.aof.manifest'), 'nonsense\n');
    process.kill(pid, 'SIGKILL');
    expect(await until(() => logged[0])).toEqual([
      'the embedded Redis does not start',
      {
        reason: expect.stringMatching(
          /^the embedded Redis ended at start \(.*manifest.*\): see .*redis\.log$/,
        ),
      },
    ]);
  });

  test('ends with its bridge when that is killed, leaving no socket', async () => {
    const { bridge, url } = await spawnBridge(folder());
    const client = await open(url);
    const pid = await pidOf(client);
    client.disconnect();
    bridge.kill('SIGKILL');
    await untilGone(pid);
    expect(existsSync(url.slice('unix://'.length))).toBe(false);
  });

  test('may be opened right after its bridge was killed, with all that was answered', async () => {
    const dataDir = folder();
    const { bridge, url } = await spawnBridge(dataDir);
    const client = await open(url);
    await Promise.all(Array.from({ length: 500 }, (_, n) => client.set(`k${n}`, 'v')));
    const pid = await pidOf(client);
    client.disconnect();
    bridge.kill('SIGKILL');
    const next = await open(closing(await openEmbedded({ dataDir })).url);
    expect(await next.dbsize()).toBe(500);
    expect(await pidOf(next)).not.toBe(pid);
    expect(isRunning(pid)).toBe(false);
  });

  test('is refused to a second bridge, which names the first', async () => {
    const dataDir = folder();
    const { bridge, url } = await spawnBridge(dataDir);
    await expect(openEmbedded({ dataDir })).rejects.toThrow(
      `DATA_DIR ${dataDir} is in use by process ${bridge.pid}: stop that bridge or tool, or set DATA_DIR to another folder`,
    );
    expect(await (await open(url)).ping()).toBe('PONG');
  });

  test.each(
    [
      ['the flock of BusyBox', 'flock'],
      ['perl where there is no flock, as on macOS', 'perl'],
    ].filter(([, locker = '']) => hasProgram(locker)),
  )('is locked by %s', async (_, locker = '') => {
    const dataDir = folder();
    const server = hasProgram('redis-server') ? 'redis-server' : 'valkey-server';
    const bin = pathOf('sh', 'sleep', locker, server);
    if (locker === 'flock') refuseWaiting(join(bin, locker));
    const env = { ...process.env, PATH: bin };
    const { bridge, url } = await spawnBridge(dataDir, env);
    const client = await open(url);
    await client.set('k', 'v');
    client.disconnect();
    const second = runBridge(dataDir, env);
    const [line] = (await once(second.stdout, 'data')) as [Buffer];
    expect(line.toString()).toContain(`is in use by process ${bridge.pid}: `);
    bridge.kill('SIGKILL');
    const next = await spawnBridge(dataDir, env);
    expect(await (await open(next.url)).get('k')).toBe('v');
  });

  test('is used by one of two bridges that start together', async () => {
    const dataDir = folder();
    const starts = await Promise.allSettled([openEmbedded({ dataDir }), openEmbedded({ dataDir })]);
    for (const start of starts) if (start.status === 'fulfilled') closing(start.value);
    expect(starts.map((start) => start.status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });
});

describe("an operator's tool", () => {
  test('uses the Redis of the running bridge, and leaves it running', async () => {
    const dataDir = folder();
    const bridge = closing(await openEmbedded({ dataDir }));
    const tool = await openEmbedded({ dataDir, joins: true });
    const client = await open(tool.url);
    expect(await pidOf(client)).toBe(await pidOf(await open(bridge.url)));
    await tool.close();
    expect(await client.ping()).toBe('PONG');
  });

  test('starts one until it is closed where no bridge runs', async () => {
    const dataDir = folder();
    const tool = await openEmbedded({ dataDir, joins: true });
    const client = await open(tool.url);
    await client.set('k', 'v');
    const pid = await pidOf(client);
    client.disconnect();
    await tool.close();
    expect(isRunning(pid)).toBe(false);
    const bridge = closing(await openEmbedded({ dataDir }));
    expect(await (await open(bridge.url)).get('k')).toBe('v');
  });

  test('leaves it running until no other tool uses it', async () => {
    const dataDir = folder();
    const first = closing(await openEmbedded({ dataDir, joins: true }));
    const second = closing(await openEmbedded({ dataDir, joins: true }));
    const client = await open(second.url);
    const closed = first.close();
    await client.set('a', '1');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await client.get('a')).toBe('1');
    client.disconnect();
    await second.close();
    await closed;
    expect(existsSync(second.url.slice('unix://'.length))).toBe(false);
  });

  test('leaves it running for another tool though it does not answer for a while', async () => {
    const dataDir = folder();
    const first = await openEmbedded({ dataDir, joins: true });
    const second = await openEmbedded({ dataDir, joins: true });
    const client = await open(second.url);
    const pid = await pidOf(client);
    process.kill(pid, 'SIGSTOP');
    const closed = first.close();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    process.kill(pid, 'SIGCONT');
    // Longer than Redis takes to end.
    expect(await client.blpop('none', 0.3)).toBeNull();
    client.disconnect();
    await Promise.all([closed, second.close()]);
  });

  test('shares one with another tool that starts at the same time', async () => {
    const dataDir = folder();
    const tools = await Promise.all([
      openEmbedded({ dataDir, joins: true }),
      openEmbedded({ dataDir, joins: true }),
      openEmbedded({ dataDir, joins: true }),
    ]);
    const clients = await Promise.all(tools.map(({ url }) => open(url)));
    expect(new Set(await Promise.all(clients.map(pidOf))).size).toBe(1);
    for (const client of clients) client.disconnect();
    await Promise.all(tools.map(async (tool) => tool.close()));
  });

  test.each([2, 10, 40])(
    'keeps the one that it has found %d ms after another began to end it',
    async (ms) => {
      const dataDir = folder();
      const first = await openEmbedded({ dataDir, joins: true });
      const closed = first.close();
      await new Promise((resolve) => setTimeout(resolve, ms));
      const second = await openEmbedded({ dataDir, joins: true });
      const client = await open(second.url);
      // Longer than Redis takes to end.
      expect(await client.blpop('none', 0.3)).toBeNull();
      client.disconnect();
      await Promise.all([closed, second.close()]);
    },
  );
});

describe('a start that cannot succeed', () => {
  test('because there is no server on the PATH names the remedy', async () => {
    const bridge = runBridge(folder(), { ...process.env, PATH: pathOf('sh') });
    const [line] = (await once(bridge.stdout, 'data')) as [Buffer];
    expect(line.toString()).toBe(
      'no redis-server or valkey-server on the PATH: run `npm run redis:install`, or set REDIS_URL\n',
    );
  });

  test('because nothing can lock its data names the remedy', async () => {
    const server = hasProgram('redis-server') ? 'redis-server' : 'valkey-server';
    const bridge = runBridge(folder(), { ...process.env, PATH: pathOf('sh', server) });
    const [line] = (await once(bridge.stdout, 'data')) as [Buffer];
    expect(line.toString()).toBe(
      'neither flock nor perl is on the PATH, and the embedded Redis needs one of them to lock its data: install one, or set REDIS_URL\n',
    );
  });

  test('because the folder cannot be written is one plain line', async () => {
    const file = folder('file');
    writeFileSync(file, '');
    await expect(openEmbedded({ dataDir: file })).rejects.toThrow(
      /^DATA_DIR .*file cannot be written \((ENOTDIR|EEXIST)\): let/,
    );
    // Linux lets nobody make a folder there, not even root.
    await expect(openEmbedded({ dataDir: '/proc/nobody/data' })).rejects.toThrow(
      /^DATA_DIR .* cannot be written/,
    );
  });

  test('because the disk is full is one plain line', async () => {
    const dataDir = folder();
    mkdirSync(join(dataDir, 'redis'), { recursive: true });
    symlinkSync('/dev/full', join(dataDir, 'redis', `test-${process.pid}`));
    await expect(openEmbedded({ dataDir })).rejects.toThrow(
      /^DATA_DIR .* cannot be written \(ENOSPC, no space is left\): free some space, or/,
    );
    expect(readdirSync(join(dataDir, 'redis'))).toEqual([]);
  });

  test('because the data is damaged reports what Redis logged', async () => {
    const dataDir = folder();
    const first = await openEmbedded({ dataDir });
    await (await open(first.url)).set('k', 'v');
    await first.close();
    const manifest = join(dataDir, 'redis/appendonlydir/appendonly.aof.manifest');
    writeFileSync(manifest, `nonsense\n${readFileSync(manifest, 'utf8')}`);
    await expect(openEmbedded({ dataDir })).rejects.toThrow(
      /ended at start \(.*manifest.*\): see .*redis\.log/,
    );
  });
});

test("data that a newer server has written is not reported as damaged: not every Redis can read Valkey's", async () => {
  const dataDir = folder();
  await (await openEmbedded({ dataDir })).close();
  const base = join(dataDir, 'redis/appendonlydir/appendonly.aof.1.base.rdb');
  writeFileSync(base, readFileSync(base, 'latin1').replace(/^REDIS\d{4}/, 'REDIS9999'), 'latin1');
  await expect(openEmbedded({ dataDir })).rejects.toThrow(/written by a newer Redis, or by Valkey: put that/);
});

test('a folder whose path is too long for a socket gets its socket elsewhere, still private', async () => {
  const dataDir = folder('d'.repeat(120));
  const { url } = closing(await openEmbedded({ dataDir }));
  const socket = url.slice('unix://'.length);
  opened.push(() => rmSync(join(socket, '..'), { recursive: true, force: true }));
  expect(socket.length).toBeLessThan(100);
  expect(statSync(join(socket, '..')).mode & 0o777).toBe(0o700);
  // By whichever path: a short one that leads to the same folder, too.
  const link = folder('link');
  symlinkSync(dataDir, link);
  const tool = await openEmbedded({ dataDir: link, joins: true });
  expect(await pidOf(await open(tool.url))).toBe(await pidOf(await open(url)));
  chmodSync(join(socket, '..'), 0o755);
  await expect(openEmbedded({ dataDir, joins: true })).rejects.toThrow(
    /is not this user's private folder: remove it/,
  );
});
