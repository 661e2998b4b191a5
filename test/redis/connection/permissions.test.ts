import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { createLog } from '../../../src/log.ts';
import { closeRedis, connectRedis } from '../../../src/redis/connection/connect.ts';
import { checkHealth } from '../../../src/redis/connection/health.ts';
import { openStore } from '../../../src/redis/open.ts';
import { checkPermissions } from '../../../src/redis/connection/permissions.ts';
import { startSentinel } from '../../support/servers/sentinels.ts';
import { startLegacyBridge } from '../../support/legacy/bridge.ts';
import { runTool } from '../../support/tools/admin.ts';
import { startBridge } from '../../support/bridge.ts';
import { createClient } from '../../support/requests/client.ts';
import { startRedis, type RedisProcess } from '../../support/redis.ts';
import { startCluster } from '../../support/servers/redis-cluster.ts';
import { startStopwatch } from '../../support/stopwatch.ts';

let redis: RedisProcess;
let operator: Redis;
beforeAll(async () => {
  redis = await startRedis();
  operator = new Redis(redis.url);
});
afterAll(async () => {
  operator.disconnect();
  await redis.stop();
});

beforeEach(async () => {
  await operator.flushall();
  await operator.acl('LOG', 'RESET');
});

const source = new URL('../../../src/redis/', import.meta.url);
const readSource = (path: string): string => readFileSync(new URL(path, source), 'utf8');
const readme = readSource('README.md');
const [documented = [], ofSentinels = []] = [
  ...readme.matchAll(/^ACL SETUSER bridge on >SECRET (.+)$/gm),
].map(([, rights = '']) => rights.split(' '));
const urlOf = (user: string): string => `redis://${user}:secret@127.0.0.1:${redis.port}`;

async function addUser(name: string, rights: readonly string[]): Promise<string> {
  await operator.call('ACL', 'SETUSER', name, 'reset', 'on', '>secret', ...rights);
  return urlOf(name);
}

async function refusal(redisUrl: string): Promise<string> {
  const releasers = createReleasers();
  const config = { redisUrl, dataDir: '', allowEviction: false, redisSecrets: {}, writeReplicas: 0 };
  try {
    await openStore({ ...config, keyPrefix: 'pb:' }, releasers, createLog('error'));
    return 'none';
  } catch (error) {
    return (error as Error).message;
  } finally {
    await releasers.close();
  }
}

test('the documented permissions are enough for the service and the tools', async () => {
  const redisUrl = await addUser('bridge', documented);
  const bridge = await startBridge({ redisUrl, keyPrefix: 'pb:' });
  try {
    const organization = await bridge.newOrganization({}, 'acme');
    const [player, admin] = [await organization.player('u1'), await organization.admin()];
    const statuses = [];
    for (const [client, method, path, json] of [
      [player, 'PUT', '/api/profile/', { username: 'ada' }],
      [player, 'GET', '/api/profile/', undefined],
      [admin, 'POST', '/api/profile/username/deny/', { ada: 'augusta' }],
      [admin, 'PUT', '/api/profile/username/denylist/', ['root']],
      [admin, 'DELETE', '/api/profile/username/deny/', ['root']],
    ] as const) {
      statuses.push((await client.request(method, path, json === undefined ? {} : { json })).status);
    }
    expect(statuses).toEqual([200, 200, 204, 204, 200]);
    const env = { REDIS_URL: redisUrl };
    for (const command of [
      'org set acme --username-comparison case-insensitive',
      'fsck --repair',
      'upgrade',
      'audit --org acme',
      'deprecation set --sunset 2030-01-01T00:00:00Z',
      'usage',
    ]) {
      expect(await runTool(env, command)).toMatchObject({ code: 0, err: '' });
    }
    const stranger = createClient(bridge.url, { organization: 'acme', apiKey: 'wrong' });
    expect((await stranger.request('GET', '/api/profile/')).status).toBe(401);
    expect(await operator.get('pb:auth-failures:127.0.0.1')).toBe('1');
  } finally {
    await bridge.close();
  }
  expect(await operator.acl('LOG')).toEqual([]);
});

test('the documented permissions are enough while requests are forwarded to the legacy service', async () => {
  const redisUrl = await addUser('forwarding', documented);
  const { bridge, legacy, admin, player, send, close } = await startLegacyBridge({
    redisUrl,
    keyPrefix: 'pb:',
  });
  try {
    const env = { REDIS_URL: redisUrl, LEGACY_BASE_URL: legacy.url };
    const [playerKey, adminKey] = [await player('u1'), await admin()];
    const headers = { 'content-type': 'application/json' };
    const call = async (key: string, method: string, path: string, json?: unknown): Promise<number> => {
      const init = json === undefined ? {} : { headers, body: JSON.stringify(json) };
      return (await send(key, method, path, init)).status;
    };
    const callAll = async () => [
      await call(playerKey, 'PUT', '/api/profile/', { username: 'ada' }),
      await call(playerKey, 'GET', '/api/profile/'),
      await call('unknown', 'GET', '/api/profile/'),
      await call(adminKey, 'POST', '/api/profile/username/deny/', { root: 'toor' }),
      await call(adminKey, 'PUT', '/api/profile/username/denylist/', ['root']),
      await call(adminKey, 'DELETE', '/api/profile/username/deny/', ['root']),
    ];
    const statuses = [200, 200, 401, 204, 204, 200];
    expect(await callAll()).toEqual(statuses);
    expect(await runTool(env, 'cutover set mirror --force --hold 60')).toMatchObject({ code: 0 });
    expect(await callAll()).toEqual(statuses);
    for (const command of ['cutover show', 'cutover status']) {
      expect((await runTool(env, command)).err).not.toContain('NOPERM');
    }
    expect(await operator.exists('pb:cutover', 'pb:cutover:organizations')).toBe(2);
    expect(await bridge.store.hget('pb:cutover', 'mode')).toBe('mirror');
  } finally {
    await close();
  }
  expect(await operator.acl('LOG')).toEqual([]);
});

test('the documented permissions are enough for a user of the sentinels', async () => {
  const sentinel = await startSentinel(redis);
  const watcher = new Redis(sentinel.url);
  try {
    await watcher.call('ACL', 'SETUSER', 'bridge', 'on', '>secret', ...ofSentinels);
    const user = 'sentinelUsername=bridge&sentinelPassword=secret';
    const bridge = await startBridge({
      redisUrl: `redis+sentinel://127.0.0.1:${sentinel.port}/main?${user}`,
    });
    await bridge.close();
    expect(await watcher.acl('LOG')).toEqual([]);
  } finally {
    watcher.disconnect();
    await sentinel.stop();
  }
});

test('a user that lacks a permission is refused at start, with what it lacks and the remedy', async () => {
  const remedy = 'src/redis/README.md lists under "Permissions"';
  const pinging = await refusal(await addUser('pinging', ['~*', '+ping']));
  expect(pinging).toContain("'info' command");
  expect(pinging).toContain(remedy);
  expect(await refusal(await addUser('informed', ['~*', '+ping', '+info']))).toMatch(
    /may not run evalsha, eval, wait: /,
  );
  const lacking = await refusal(await addUser('lacking', [...documented, '-hset', '-xadd']));
  expect(lacking).toMatch(/may not run hset, xadd: /);
  expect(lacking).toContain(remedy);
  expect(await refusal(await addUser('hurried', [...documented, '-wait']))).toMatch(/may not run wait: /);
  // Also where the server has every script already.
  expect(await refusal(await addUser('scripting', [...documented, '-eval']))).toMatch(/may not run eval: /);
  const elsewhere = documented.map((right) => (right === '~pb:*' ? '~other:*' : right));
  expect(await refusal(await addUser('elsewhere', elsewhere))).toMatch(
    /may not use keys that begin with pb:/,
  );
});

test('a server whose user may no longer run scripts is not readable', async () => {
  const client = await connectRedis(await addUser('revoked', documented));
  expect(await checkHealth(client)).toEqual({ isReadable: true, faults: [] });
  await operator.call('ACL', 'SETUSER', 'revoked', '-evalsha');
  expect(await checkHealth(client)).toEqual({ isReadable: false, faults: ['store-unavailable'] });
  await closeRedis(client);
});

test('a running service whose user may no longer run eval is ready until its server forgets the scripts', async () => {
  const redisUrl = await addUser('waning', documented);
  const bridge = await startBridge({ redisUrl, keyPrefix: 'pb:' });
  try {
    const player = await (await bridge.newOrganization()).player('u1');
    const statuses = async (): Promise<number[]> => {
      const all = [];
      for (const path of ['/api/profile/', '/readyz']) all.push((await player.request('GET', path)).status);
      return all;
    };
    expect(await statuses()).toEqual([404, 200]);
    await operator.call('ACL', 'SETUSER', 'waning', '-eval');
    expect(await statuses()).toEqual([404, 200]);
    await operator.script('FLUSH');
    expect(await statuses()).toEqual([503, 503]);
    await operator.call('ACL', 'SETUSER', 'waning', '+eval');
    expect(await statuses()).toEqual([404, 200]);
  } finally {
    await bridge.close();
  }
});

test('a server that has renamed a command is refused at start, with the command and the remedy', async () => {
  const renaming = ['WAIT', 'SMISMEMBER'].flatMap((name) => ['--rename-command', name, '']);
  const server = await startRedis(renaming);
  expect(await refusal(server.url)).toMatch(/may not run smismember, wait: .*none of .* may be renamed/);
  await server.stop();
});

test('commands about a cluster are required only in one', async () => {
  expect(await refusal(await addUser('single', [...documented, '-cluster']))).toBe('none');
  const cluster = await startCluster();
  try {
    for (const { url } of cluster.masters) {
      const master = new Redis(url);
      await master.call('ACL', 'SETUSER', 'bridge', 'on', '>secret', ...documented, '-cluster|nodes');
      master.disconnect();
    }
    const asUser = cluster.url.replace('://', '://bridge:secret@');
    expect(await refusal(asUser)).toMatch(/may not run cluster\|nodes: /);
  } finally {
    await cluster.stop();
  }
});

test('masters of a cluster that stay silent do not hold up a tool', async () => {
  const cluster = await startCluster();
  const store = await connectRedis(cluster.url, { commandTimeout: 30_000 });
  try {
    for (const { pid } of cluster.masters.slice(1)) process.kill(pid, 'SIGSTOP');
    const elapsed = startStopwatch();
    await checkPermissions(store, 'pb:');
    expect(elapsed()).toBeLessThan(15_000);
  } finally {
    store.disconnect();
    await cluster.stop();
  }
});

test('every command of a script is tried at start', () => {
  const scripts = readdirSync(new URL('lua', source), { recursive: true, encoding: 'utf8' });
  const called = scripts
    .filter((file) => file.endsWith('.lua'))
    .flatMap((file) => [...readSource(`lua/${file}`).matchAll(/redis\.p?call\('(\w+)'/g)])
    .map(([, command = '']) => command.toLowerCase());
  const tried = readSource('lua/connection/permissions.lua').match(/(?<=\{ ')\w+/g);
  expect(called.length).toBeGreaterThan(20);
  expect(tried).toEqual(expect.arrayContaining(called));
});
