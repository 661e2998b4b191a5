import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { startCluster } from '../support/servers/redis-cluster.ts';

test('a process that closes its connection ends, even while it looks where the slots are', async () => {
  const cluster = await startCluster();
  const script = `
    import { closeRedis, connectRedis } from './src/redis/connection/connect.ts';
    const client = await connectRedis(${JSON.stringify(cluster.url)});
    const refresh = client.refreshSlotsCache.bind(client);
    const hold = setInterval(() => {}, 1000);
    await new Promise((begun) => {
      client.refreshSlotsCache = (done) => { refresh(done); begun(); };
    });
    await closeRedis(client);
    clearInterval(hold);`;
  const closing = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const late = setTimeout(() => closing.kill('SIGKILL'), 30_000);
  try {
    expect(await once(closing, 'exit')).toEqual([0, null]);
  } finally {
    clearTimeout(late);
    await cluster.stop();
  }
});
