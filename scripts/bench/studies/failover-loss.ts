import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { Redis } from 'ioredis';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { table } from '../../../src/lib/system/terminal.ts';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { createTestOrganization } from '../../../test/support/bridge.ts';
import { createClient, type Client } from '../../../test/support/requests/client.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { openTestStore } from '../../../test/support/store.ts';
import { startBridgeProcess } from '../../../test/support/processes.ts';
import { print, runTool } from '../../program.ts';

const program = new Command('npx tsx scripts/bench/studies/failover-loss.ts')
  .description(
    'Measure how many acknowledged writes a failover loses: eight clients replace their avatars as fast as they can; then the master and its link to the replica are lost at the same instant, and the replica takes over.',
  )
  .action(study);

const users = Array.from({ length: 8 }, (_, index) => `u${index}`);
const rounds = 5;
const site = { keyPrefix: 'pb:', organizationHeader: 'x-platform-organization-id' };

/** A connection that delivers what the master sends after this many ms, and loses what is in flight when it is cut. */
async function startLink(masterPort: number, delay: number): Promise<{ port: number; cut: () => void }> {
  const sockets: Socket[] = [];
  const server = createServer((replica) => {
    const master = connect(masterPort, '127.0.0.1');
    sockets.push(replica, master);
    for (const socket of [replica, master]) socket.on('error', () => {});
    replica.pipe(master);
    master.on('data', (bytes) => void setTimeout(() => replica.write(bytes), delay));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

interface Loss {
  acknowledged: number;
  lost: number;
  /** How long before the failover the oldest lost write was acknowledged, in ms. */
  oldestMs: number;
}

async function failOver(delay: number, writeReplicas: number): Promise<Loss> {
  const releasers = createReleasers();
  try {
    const master = await startRedis(['--repl-diskless-sync-delay', '0']);
    releasers.onClose('master', master.stop);
    const link = await startLink(master.port, delay);
    releasers.onClose('link', async () => link.cut());
    const replica = await startRedis(['--replicaof', '127.0.0.1', String(link.port)]);
    releasers.onClose('replica', replica.stop);
    const direct = new Redis(master.url);
    await direct.set('replicated', '');
    while ((await direct.wait(1, 1000)) < 1);
    direct.disconnect();

    const environment = { REDIS_URL: master.url, WRITE_REPLICAS: String(writeReplicas) };
    const bridge = await startBridgeProcess(environment);
    releasers.onClose('bridge', bridge.stop);
    const store = await openTestStore(master.url);
    const organization = await createTestOrganization(bridge.url, site, store, 'study', {
      ...defaultSettings,
      objectImageUrlTemplate: 'https://images.example.com/{objectDefinitionId}',
    });
    const keys = await Promise.all(
      users.map(async (userId) => (await organization.newKey({ role: 'player', userId })).apiKey),
    );
    await closeRedis(store);
    const clientsOf = (url: string): Client[] =>
      keys.map((apiKey) => createClient(url, { organization: 'study', apiKey }));

    const over = new AbortController();
    const writing = clientsOf(bridge.url).map(async (client) => {
      const acknowledged: number[] = [];
      for (let count = 0; !over.signal.aborted; count++) {
        const json = { avatarObjectDefinitionId: { datasourceId: 'd', objectDefinitionId: String(count) } };
        const answer = await client.request('PUT', '/api/profile/', { json });
        if (answer.status !== 200) break;
        acknowledged.push(performance.now());
      }
      return acknowledged;
    });
    await sleep(2000);
    link.cut();
    process.kill(master.pid, 'SIGKILL');
    const lostAt = performance.now();
    over.abort();
    const acknowledged = await Promise.all(writing);

    const promoted = new Redis(replica.url);
    await promoted.replicaof('NO', 'ONE');
    promoted.disconnect();
    const successor = await startBridgeProcess({ REDIS_URL: replica.url });
    releasers.onClose('successor', successor.stop);
    const kept = await Promise.all(
      clientsOf(successor.url).map(async (client) => {
        const { body } = await client.request('GET', '/api/profile/');
        return Number((body as { avatar?: { objectDefinitionId: string } }).avatar?.objectDefinitionId ?? -1);
      }),
    );
    const lost = acknowledged.flatMap((times, user) => times.slice((kept[user] ?? -1) + 1));
    return {
      acknowledged: acknowledged.flat().length,
      lost: lost.length,
      oldestMs: lost.length === 0 ? 0 : lostAt - Math.min(...lost),
    };
  } finally {
    await releasers.close();
  }
}

async function study(): Promise<void> {
  const rows: string[][] = [];
  for (const writeReplicas of [0, 1]) {
    for (const delay of [0, 20, 200]) {
      const losses: Loss[] = [];
      for (let round = 0; round < rounds; round++) losses.push(await failOver(delay, writeReplicas));
      const sum = (figure: keyof Loss): number => losses.reduce((total, loss) => total + loss[figure], 0);
      const oldestMs = Math.max(...losses.map((loss) => loss.oldestMs));
      rows.push([
        String(writeReplicas),
        `${delay} ms`,
        String(sum('acknowledged')),
        String(sum('lost')),
        `${Math.round(oldestMs)} ms`,
      ]);
    }
  }
  const figures = ['acknowledged', 'lost', 'oldest lost write'];
  print(table(['WRITE_REPLICAS', 'replica behind by', ...figures], rows, figures));
}

await runTool(program);
