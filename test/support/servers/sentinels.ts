import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startRedis, type RedisProcess } from '../redis.ts';
import { until } from '../until.ts';

/** Starts three sentinels that watch this master, which has one replica, and waits until they know each other. */
export async function startSentinels(master: RedisProcess): Promise<RedisProcess[]> {
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(master)));
  for (const { url } of sentinels) await untilReady(url);
  return sentinels;
}

export async function startSentinel(master: RedisProcess): Promise<RedisProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'sentinel-'));
  const file = join(folder, 'sentinel.conf');
  const settings = [
    `sentinel monitor main 127.0.0.1 ${master.port} 2`,
    'sentinel down-after-milliseconds main 1000',
    'sentinel failover-timeout main 5000',
  ];
  writeFileSync(file, `${settings.join('\n')}\n`);
  const sentinel = await startRedis([file, '--sentinel']);
  return {
    ...sentinel,
    stop: async () => {
      await sentinel.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Sentinels find each other and the replicas by themselves, and tell nobody when they have. */
async function untilReady(url: string): Promise<void> {
  const sentinel = new Redis(url);
  // A sentinel that was not scheduled for two seconds otherwise does nothing for the next thirty.
  await sentinel.call('sentinel', 'debug', 'tilt-period', '1000');
  await until(async () =>
    /num-slaves,1,.*num-other-sentinels,2,/.test(String(await sentinel.call('sentinel', 'master', 'main'))),
  );
  sentinel.disconnect();
}
