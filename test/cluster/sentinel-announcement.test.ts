import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { RedisClient } from '../../src/redis/connection/client.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { startRedis, type RedisProcess } from '../support/redis.ts';
import { startSentinels } from '../support/servers/sentinels.ts';
import { openTestStore } from '../support/store.ts';

let master: RedisProcess;
let replica: RedisProcess;
let sentinels: RedisProcess[];
let proxies: Server[];
let client: RedisClient;
/** How much later the replies on connections that are opened from now on arrive, in ms. */
let delay = 0;

beforeAll(async () => {
  master = await startRedis();
  replica = await startRedis(['--replicaof', '127.0.0.1', String(master.port)]);
  sentinels = await startSentinels(master);
  proxies = await Promise.all(sentinels.map(({ port }) => startProxy(port)));
  const hosts = proxies.map((proxy) => `127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  // Each question takes two round trips through the proxies.
  client = await openTestStore(`redis+sentinel://${hosts.join(',')}/main`);
});
afterAll(async () => {
  await closeRedis(client);
  for (const proxy of proxies) proxy.close();
  await Promise.all([...sentinels, replica, master].map((one) => one.stop()));
});

async function startProxy(port: number): Promise<Server> {
  const server = createServer((socket) => {
    const target = connect(port, '127.0.0.1');
    const late = delay;
    target.on('data', (chunk) => setTimeout(() => socket.write(chunk), late));
    socket.on('data', (chunk) => target.write(chunk));
    for (const [one, other] of [
      [socket, target],
      [target, socket],
    ] as const) {
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test('a client follows a failover that is announced while it asks a sentinel for the master', async () => {
  delay = 1000;
  let lost = 0;
  client.on('end', () => (lost += 1));
  const back = new Promise((resolve) => client.once('ready', resolve));
  process.kill(master.pid, 'SIGKILL');
  await back;
  // The announcement has ended an attempt to connect, which is what this test is about.
  expect(lost).toBeGreaterThan(0);
  expect(await client.set('marker', '1')).toBe('OK');
});
