import { setTimeout as sleep } from 'node:timers/promises';
import { createLifetime } from '../../src/lifetime.ts';
import { closeRedis, connectRedis } from '../../src/redis/connection/connect.ts';
import { denylistKey } from '../../src/redis/keys.ts';
import { defineScripts, type Store } from '../../src/redis/scripts.ts';
import { startRedis } from '../../test/support/redis.ts';
import { percentile, probe, send, type Probe } from './probe.ts';
import { adminKey, baseOf, playerKey, seedOrganization } from './seed.ts';
import { spawnBridge, type Spawned } from './spawn.ts';

// What 200,000 names in one request do to everybody else: ban, delete and overwrite, each with reads meanwhile; and
// a bridge killed in the middle of an overwrite. Build first (npm run build); then:
//   npx tsx scripts/bench/long-lists.ts [NAMES=200000]

const names = Number(process.argv[2] ?? 200_000);
const organization = 'bridge';
const list = denylistKey(baseOf(organization), '0');
const headers = { 'x-platform-organization-id': organization, 'content-type': 'application/json' };

const lifetime = createLifetime();
try {
  const redis = await startRedis(['--slowlog-log-slower-than', '1000', '--slowlog-max-len', '1000']);
  lifetime.onClose('redis', redis.stop);
  const client = await connectRedis(redis.url);
  lifetime.onClose('connection', () => closeRedis(client));
  const store = defineScripts(client);
  await seedOrganization(store, organization);
  const bridge = await spawnBridge(redis.url);
  lifetime.onClose('bridge', () => bridge.stop());

  // Every hundredth of the first is somebody's name, who is renamed.
  const banned = Array.from({ length: names }, (_, n) =>
    n % 100 === 0 && n < 100_000 ? `player-${String(n / 100).padStart(6, '0')}` : `rude-${n}`,
  );
  const replaced = Object.fromEntries(banned.map((name, n) => [name, `renamed-${n}`]));
  await measure(store, bridge, 'ban', 'POST', 'deny', replaced);
  await measure(store, bridge, 'overwrite', 'PUT', 'denylist', numbered('first'));
  await measure(store, bridge, 'overwrite of a list as long', 'PUT', 'denylist', numbered('second'));
  await measure(store, bridge, 'delete', 'DELETE', 'deny', numbered('second'));
  await killedMidway(store, redis.url);
} finally {
  await lifetime.close();
}

async function measure(
  store: Store,
  bridge: Spawned,
  what: string,
  method: string,
  path: string,
  body: object,
): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(body));
  const before = reads(bridge);
  await sleep(1500);
  const idle = await before.stop();
  await store.slowlog('RESET');
  const meanwhile = reads(bridge);
  const begun = performance.now();
  const status = await change(bridge, method, path, bytes);
  const took = performance.now() - begun;
  const busy = await meanwhile.stop();
  const slow = (await store.slowlog('GET', 1000)) as [number, number, us: number, [string]][];
  const scripts = slow.filter(([, , , [command]]) => /^eval/i.test(command)).map(([, , us]) => us / 1000);
  const p99 = [idle, busy].map((times) => percentile(times, 0.99));
  say(
    `${what}: ${status} after ${Math.round(took)} ms (${(bytes.length / 1e6).toFixed(1)} MB); ` +
      `p99 of reads ${p99.map((ms) => ms.toFixed(1)).join(' -> ')} ms, longest ${percentile(busy, 1).toFixed(0)} ms; ` +
      `scripts above 1 ms: ${scripts.length}, slowest ${Math.max(0, ...scripts).toFixed(1)} ms; ` +
      `resident ${bridge.residentMiB()} MiB`,
  );
}

async function killedMidway(store: Store, redisUrl: string): Promise<void> {
  const bridge = await spawnBridge(redisUrl);
  await change(bridge, 'PUT', 'denylist', Buffer.from('["old"]'));
  const sent = change(bridge, 'PUT', 'denylist', Buffer.from(JSON.stringify(numbered('third')))).catch(
    () => {},
  );
  const stage = `${baseOf(organization)}stage`;
  while ((await store.hlen(stage)) < names / 4) await sleep(1);
  await bridge.stop('SIGKILL');
  await sent;
  const staged = await store.hlen(stage);
  say(
    `killed with ${staged} of ${names} names staged: the denylist is ${JSON.stringify(await store.hkeys(list))}`,
  );
  const begun = performance.now();
  while ((await store.exists(stage)) === 1) await sleep(10);
  say(`the stage has expired ${((performance.now() - begun) / 1000).toFixed(1)} s later`);
}

function reads(bridge: Spawned): Probe {
  return probe(`${bridge.url}/api/profile/`, (user) => ({
    ...headers,
    'x-api-key': playerKey.replace('{user}', String(user)),
  }));
}

async function change(bridge: Spawned, method: string, path: string, body: Buffer): Promise<number> {
  const url = `${bridge.url}/api/profile/username/${path}/`;
  const length = { 'content-length': String(body.length) };
  return await send(method, url, { ...headers, ...length, 'x-api-key': adminKey }, body);
}

function numbered(word: string): string[] {
  return Array.from({ length: names }, (_, n) => `${word}-name-${n}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
