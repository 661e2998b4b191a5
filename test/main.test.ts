import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import type { DemoKeys } from '../src/demo.ts';
import type { UsageReport } from '../src/deprecation/reports/report.ts';
import { closeRedis } from '../src/redis/connection/connect.ts';
import { cutoverKey, gapsKey, organizationBase } from '../src/redis/keys.ts';
import { startLegacy } from './support/legacy/legacy.ts';
import { runTool } from './support/tools/admin.ts';
import { createClient, type Client } from './support/requests/client.ts';
import { programOf } from './support/run/program.ts';
import { environmentFor, freshPrefix, isRunning, startRedis } from './support/redis.ts';
import { openTestStore } from './support/store.ts';
import { until } from './support/until.ts';
import { useCleanup } from './support/use-store.ts';

const undo = useCleanup();

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'main-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

interface Running {
  child: ChildProcess;
  url: string;
  lines: string[];
  exited: Promise<unknown[]>;
}

function spawnMain(env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn(process.execPath, programOf('src/main'), {
    env: { PATH: process.env['PATH'], PORT: '0', ADMIN_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  undo.push(() => child.kill('SIGKILL'));
  return child;
}

/** Starts the program, as npm start would, and waits until it listens. */
async function start(env: NodeJS.ProcessEnv): Promise<Running> {
  const child = spawnMain(env);
  const exited = once(child, 'exit');
  const lines: string[] = [];
  if (child.stdout === null) throw new Error('no output');
  const reader = createInterface(child.stdout);
  const url = await new Promise<string>((resolve, reject) => {
    reader.on('line', (line) => {
      lines.push(line);
      const found = /"message":"listening".*"pid":(\d+).*"url":"([^"]+)"/.exec(line);
      if (found !== null && Number(found[1]) === child.pid) resolve(found[2] ?? '');
    });
    exited.then(() => reject(new Error(`it ended: ${lines.join('\n')}`)), reject);
  });
  return { child, url, lines, exited };
}

/** The processes of the workers that have started to listen. */
function workersOf(lines: readonly string[], child: ChildProcess): number[] {
  return lines.flatMap((line) => {
    const { message, pid } = (line.startsWith('{') ? JSON.parse(line) : {}) as Record<string, unknown>;
    return message === 'listening' && pid !== child.pid ? [Number(pid)] : [];
  });
}

function adminUrlOf(lines: readonly string[]): string {
  const opened = lines.find((line) => line.includes('admin port open')) ?? '{}';
  return (JSON.parse(opened) as { url: string }).url;
}

/** A server that never answers. */
async function listening(): Promise<{ server: Server; port: number }> {
  const server = createServer().listen(0, '127.0.0.1');
  undo.push(() => server.close());
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** Runs the program to its end. */
async function runToEnd(env: NodeJS.ProcessEnv): Promise<{ code: unknown; said: string; logged: string }> {
  const child = spawnMain(env);
  let said = '';
  let logged = '';
  child.stderr?.on('data', (chunk) => (said += String(chunk)));
  child.stdout?.on('data', (chunk) => (logged += String(chunk)));
  const [code] = await once(child, 'close');
  return { code: code as unknown, said, logged };
}

function demoPlayer(folder: string, url: string): Client {
  const keys = JSON.parse(readFileSync(join(folder, 'demo-keys.json'), 'utf8')) as DemoKeys;
  return createClient(url, { organization: keys.organizationId, apiKey: keys.playerKey });
}

describe('the service with the embedded Redis', () => {
  test('creates a demo organization that survives kill -9, and stops its Redis with it', async () => {
    const folder = newFolder();
    const first = await start({ DATA_DIR: folder });
    expect(first.lines.join('\n')).toContain('curl -i -X PUT');
    const put = await demoPlayer(folder, first.url).request('PUT', '/api/profile/', {
      json: { username: 'ada' },
    });
    expect(put.status).toBe(200);
    const redis = Number(readFileSync(join(folder, 'redis', 'lock'), 'utf8'));
    expect(isRunning(redis)).toBe(true);
    first.child.kill('SIGKILL');
    await first.exited;

    const second = await start({ DATA_DIR: folder });
    const get = await demoPlayer(folder, second.url).request('GET', '/api/profile/');
    expect([get.status, get.body]).toEqual([200, { username: 'ada' }]);
    second.child.kill('SIGTERM');
    expect(await second.exited).toEqual([0, null]);
  });

  test('after SIGTERM, and another one, accepts requests for DRAIN_DELAY seconds while /readyz is already 503', async () => {
    const folder = newFolder();
    const { child, url, exited } = await start({ DATA_DIR: folder, DRAIN_DELAY: '5' });
    const player = demoPlayer(folder, url);
    await player.request('PUT', '/api/profile/', { json: {} });
    child.kill('SIGTERM');
    const pending = Array.from({ length: 20 }, () => player.request('GET', '/api/profile/'));
    child.kill('SIGTERM');
    expect((await Promise.all(pending)).map(({ status }) => status)).toEqual(Array(20).fill(200));
    const close = { headers: { connection: 'close' } };
    while ((await fetch(`${url}/readyz`, close)).status !== 503);
    expect((await fetch(`${url}/livez`, close)).status).toBe(200);
    expect(await exited).toEqual([0, null]);
  });
});

test('a signal during the start ends the service with exit code 0', async () => {
  // A Redis that never answers.
  const { port, server } = await listening();
  const child = spawnMain({ REDIS_URL: `redis://127.0.0.1:${port}`, DATA_DIR: newFolder() });
  await once(server, 'connection');
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('a signal during the start ends what has been started in good order', async () => {
  const keyPrefix = freshPrefix();
  const store = await openTestStore();
  undo.push(() => closeRedis(store));
  const instances = async (): Promise<string[]> =>
    (await store.hkeys(cutoverKey(keyPrefix))).filter((field) => field.startsWith('instance:'));
  const env = { ...environmentFor(keyPrefix), WORKERS: '2' };
  const child = spawnMain({ ...env, DATA_DIR: newFolder() });
  while ((await instances()).length === 0) await sleep(5);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
  // Otherwise they would count as killed, with changes that may be lost.
  expect(await instances()).toEqual([]);
});

describe('the service with several workers', () => {
  test('shares port and ledger among the workers, replaces dead ones, and answers pending requests before it stops', async () => {
    const folder = newFolder();
    const { child, url, lines, exited } = await start({ DATA_DIR: folder, WORKERS: '2' });
    const pids = (): number[] => workersOf(lines, child);
    const untilWorkers = async (count: number): Promise<void> => {
      while (pids().length < count) await once(child.stdout ?? child, 'data');
    };
    await untilWorkers(2);
    const player = demoPlayer(folder, url);
    expect((await player.request('PUT', '/api/profile/', { json: { username: 'ada' } })).status).toBe(200);

    const metrics = await (await fetch(`${adminUrlOf(lines)}/metrics`)).text();
    expect(metrics).toMatch(
      /^profile_bridge_deprecated_requests_total\{operation="putProfile",organization="demo"\} 1$/m,
    );
    expect(metrics).toMatch(/^profile_bridge_redis_up 1$/m);

    process.kill(pids()[0] ?? 0, 'SIGKILL');
    await untilWorkers(3);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => player.request('GET', '/api/profile/')),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));

    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    expect(pids().filter(isRunning)).toEqual([]);
    const { out } = await runTool({ DATA_DIR: folder }, 'usage --group operation --json');
    const { rows } = JSON.parse(out) as UsageReport;
    expect(rows.find(({ operation }) => operation === 'getProfile')?.calls).toBe(10);
  });

  test('shows the lag of the worker that lags most, and metrics at once while it hangs, and loses no count when it is killed', async () => {
    const folder = newFolder();
    const { child, url, lines } = await start({ DATA_DIR: folder, WORKERS: '2' });
    const keys = JSON.parse(readFileSync(join(folder, 'demo-keys.json'), 'utf8')) as DemoKeys;
    const headers = { 'x-platform-organization-id': keys.organizationId, 'x-api-key': keys.playerKey };
    // Each on a connection of its own, so that every worker serves some.
    for (let i = 0; i < 6; i++)
      await fetch(`${url}/api/profile/`, { headers: { ...headers, connection: 'close' } });
    const read = async () =>
      await fetch(`${adminUrlOf(lines)}/metrics`, { signal: AbortSignal.timeout(4000) });
    const counted = async () => {
      const response = await read();
      const text = await response.text();
      const calls = /_requests_total\{operation="getProfile",organization="demo"\} (\d+)$/m.exec(text);
      const gauges = ['redis_up', 'silent_workers'].map(
        (name) => new RegExp(`^profile_bridge_${name} (\\d)$`, 'm').exec(text)?.[1],
      );
      return [response.status, calls?.[1], ...gauges];
    };
    expect(await counted()).toEqual([200, '6', '1', '0']);
    const worker = workersOf(lines, child).at(0) ?? 0;
    // A stopped process outlives its parent.
    undo.push(() => isRunning(worker) && process.kill(worker, 'SIGKILL'));
    process.kill(worker, 'SIGSTOP');
    await sleep(500);
    process.kill(worker, 'SIGCONT');
    const lag = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await (await read()).text())?.[1];
    expect(Number(lag)).toBeGreaterThan(0.3);
    process.kill(worker, 'SIGSTOP');
    expect(await counted()).toEqual([200, '6', '1', '1']);
    process.kill(worker, 'SIGKILL');
    expect(await counted()).toEqual([200, '6', '1', '0']);
    while (workersOf(lines, child).length < 3) await once(child.stdout ?? child, 'data');
    expect(await counted()).toEqual([200, '6', '1', '0']);
  });

  test('stops in good order although the legacy service does not respond, and records what is in doubt', async () => {
    const legacy = await startLegacy();
    undo.push(legacy.close);
    const keyPrefix = freshPrefix();
    const store = await openTestStore();
    undo.push(() => closeRedis(store));
    const env = {
      ...environmentFor(keyPrefix),
      LEGACY_BASE_URL: legacy.url,
      LEGACY_TIMEOUT: '60',
    };
    await runTool(env, 'org set acme');
    const created = await runTool(env, 'key create --org acme --role player --user ada --json');
    const { apiKey } = JSON.parse(created.out) as { apiKey: string };
    const { child, url, exited } = await start({ ...env, DATA_DIR: newFolder(), WORKERS: '2' });
    legacy.behaviour.gate = new Promise(() => {});
    const player = createClient(url, { organization: 'acme', apiKey });
    const sending = player.request('PUT', '/api/profile/', { json: { username: 'Ada' } }).catch(() => {});
    await until(() => legacy.received.length > 0);
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    await sending;
    const fields = await store.hkeys(cutoverKey(keyPrefix));
    expect(fields.filter((field) => /^instance:|^gap$/.test(field))).toEqual([]);
    expect(await store.hkeys(gapsKey(organizationBase(keyPrefix, 'acme')))).toEqual(['unmarked-change']);
  });

  test('says nothing on standard error if a signal arrives while its workers start', async () => {
    const env = { ...environmentFor(freshPrefix()), DATA_DIR: newFolder(), WORKERS: '4' };
    const child = spawnMain(env);
    let said = '';
    child.stderr?.on('data', (chunk) => (said += String(chunk)));
    const closed = once(child, 'close');
    // The workers are started right after this.
    for (let logged = ''; !logged.includes('admin port open');) {
      logged += String((await once(child.stdout ?? child, 'data'))[0]);
    }
    await sleep(20);
    child.kill('SIGTERM');
    expect([await closed, said]).toEqual([[0, null], '']);
  });

  test('exits with 1 and the reason if the workers cannot start', async () => {
    const { port } = await listening();
    const env = { DATA_DIR: newFolder(), WORKERS: '2', PORT: String(port) };
    const { code, said, logged } = await runToEnd(env);
    expect([code, said]).toEqual([1, expect.stringMatching(/port \d+ on 127\.0\.0\.1 is in use/)]);
    expect(logged).not.toContain('replaced');
  });
});

describe('an error at start is one plain line with the remedy', () => {
  test.each<[string, () => NodeJS.ProcessEnv, number, RegExp]>([
    [
      'all mistakes in the configuration, and exit code 2',
      () => ({ PORT: 'x', LOG_LEVEL: 'loud', SUNSET_AT: '2025-01-01T00:00:00Z' }),
      2,
      /^ {2}PORT must be .*\n {2}LOG_LEVEL must be .*\n {2}SUNSET_AT: the sunset .* is before/m,
    ],
    [
      'redis-server is not installed',
      () => {
        const path = newFolder();
        symlinkSync('/bin/sh', join(path, 'sh'));
        return { PATH: path };
      },
      1,
      /npm run redis:install/,
    ],
    ['Redis is not reachable', () => ({ REDIS_URL: 'redis://127.0.0.1:1' }), 1, /REDIS_URL/],
    [
      'DATA_DIR is a file',
      () => {
        const file = join(newFolder(), 'file');
        writeFileSync(file, '');
        return { DATA_DIR: file };
      },
      1,
      /DATA_DIR .* cannot be written/,
    ],
  ])('%s', async (_name, env, expected, line) => {
    const { code, said } = await runToEnd({ DATA_DIR: newFolder(), ...env() });
    expect(said).toMatch(line);
    expect([code, said.includes('    at ')]).toEqual([expected, false]);
  });

  test('a Redis that takes no writes', async () => {
    const redis = await startRedis(['--min-replicas-to-write', '1']);
    undo.push(redis.stop);
    const { code, said } = await runToEnd({ REDIS_URL: redis.url, DATA_DIR: newFolder() });
    expect([code, said]).toEqual([
      1,
      expect.stringMatching(/start: Redis has too few replicas \(NOREPLICAS .*\): start them/),
    ]);
  });

  test('a Redis that may evict keys, unless ALLOW_EVICTION is set', async () => {
    const redis = await startRedis(['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru']);
    undo.push(redis.stop);
    const env = { REDIS_URL: redis.url, KEY_PREFIX: freshPrefix(), DATA_DIR: newFolder() };
    const { code, said } = await runToEnd(env);
    expect([code, said]).toEqual([1, expect.stringMatching(/noeviction.*ALLOW_EVICTION=1/)]);
    const accepted = await start({ ...env, ALLOW_EVICTION: '1' });
    expect(accepted.url).toMatch(/^http/);
  });
});

test('with REDIS_URL the service needs no redis-server, creates no demo organization, and runs on when nobody reads its log', async () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'bin'));
  const { child, url, lines, exited } = await start({
    PATH: join(folder, 'bin'),
    DATA_DIR: folder,
    ...environmentFor(freshPrefix()),
  });
  expect(lines.join('\n')).not.toContain('curl');
  child.stdout?.destroy();
  // Each refusal is a line of the log.
  for (let refused = 0; refused < 5; refused++) {
    expect((await fetch(`${url}/api/profile/`)).status).toBe(401);
  }
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
});
