import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { startCommandProxy, type Action } from '../../../scripts/drills/tools/proxy.ts';
import { createCommandSplitter } from '../../../scripts/drills/tools/resp.ts';
import { startRedis, type RedisProcess } from '../../support/redis.ts';

let redis: RedisProcess;
let direct: Redis;
beforeAll(async () => {
  redis = await startRedis();
  direct = new Redis(redis.url);
});
afterAll(async () => {
  direct.disconnect();
  await redis.stop();
});

/** Sets k1, k2 and k3 through a proxy, one after another; which calls succeeded, and what Redis has. */
async function setThree(decide: (position: number) => Action | Promise<Action>) {
  await direct.flushall();
  const proxy = await startCommandProxy(redis, decide);
  const options = {
    protocol: 2,
    enableReadyCheck: false,
    disableClientInfo: true,
    maxRetriesPerRequest: 0,
  } as const;
  const client = new Redis(proxy.url, { ...options, autoResendUnfulfilledCommands: false });
  client.on('error', () => {});
  const succeeded: string[] = [];
  for (const key of ['k1', 'k2', 'k3']) {
    await client.set(key, '1').then(
      () => succeeded.push(key),
      () => {},
    );
  }
  client.disconnect();
  const commands = proxy.commands();
  await proxy.close();
  return { succeeded, commands, stored: (await direct.keys('*')).sort() };
}

test('commands pass, and are counted', async () => {
  const all = ['k1', 'k2', 'k3'];
  expect(await setThree(() => 'forward')).toEqual({ succeeded: all, commands: 3, stored: all });
});

test('a killed client gets nothing more to Redis', async () => {
  const killed = await setThree((position) => (position === 2 ? 'kill' : 'forward'));
  expect(killed).toMatchObject({ succeeded: ['k1'], stored: ['k1'] });
});

test('a command whose reply is lost is executed, and the client may go on', async () => {
  const lost = await setThree((position) => (position === 2 ? 'lose-reply' : 'forward'));
  expect(lost).toEqual({ succeeded: ['k1', 'k3'], commands: 3, stored: ['k1', 'k2', 'k3'] });
});

test('while a command waits, others may write', async () => {
  const seen: number[] = [];
  await setThree(async (position): Promise<Action> => {
    if (position === 2) seen.push(await direct.exists('k1', 'k2'));
    return 'forward';
  });
  expect(seen).toEqual([1]);
});

test('commands are recognized however their bytes are split', () => {
  const command = fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 4 }).map((words) => {
    const bulks = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
    return Buffer.from(`*${words.length}\r\n${bulks.join('')}`);
  });
  fc.assert(
    fc.property(
      fc.array(command),
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }),
      (commands, cuts) => {
        const split = createCommandSplitter();
        const bytes = Buffer.concat(commands);
        const found: Buffer[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = cuts[turn % cuts.length] ?? 1;
          found.push(...split(bytes.subarray(at, at + size)));
          at += size;
        }
        expect(found.map(String)).toEqual(commands.map(String));
      },
    ),
  );
});
