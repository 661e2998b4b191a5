import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startBridge, type TestBridge } from '../../support/bridge.ts';
import { startRedis, type RedisProcess } from '../../support/redis.ts';

const names = Array.from({ length: 20_000 }, (_, n) => `name-${n}`);

let folder: string;
let redis: RedisProcess;
let bridge: TestBridge;
const start = (port: string[] = []) =>
  startRedis(['--appendonly', 'yes', '--appendfsync', 'always', ...port], folder);
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lost-store-'));
  redis = await start();
  bridge = await startBridge({ redisUrl: redis.url });
});
afterAll(async () => {
  await bridge.close();
  await redis.stop();
  rmSync(folder, { recursive: true });
});

test('a ban cut off half-way by the death of Redis reports an unknown outcome', async () => {
  const organization = await bridge.newOrganization();
  const admin = await organization.admin();
  const denied = () => bridge.store.hlen(`${organization.base}d0`);
  const ban = () =>
    admin.request('POST', '/api/profile/username/deny/', {
      json: Object.fromEntries(names.map((name) => [name, 'x'])),
    });

  const answer = ban();
  while ((await denied()) === 0);
  process.kill(redis.pid, 'SIGKILL');
  const { status, body } = await answer;
  expect([status, body]).toMatchObject([
    503,
    {
      code: 'store-unavailable',
      detail: expect.stringMatching(
        /unknown how much of it took effect; sending the same request again is safe/,
      ),
    },
  ]);

  await redis.stop();
  redis = await start(['--port', String(redis.port)]);
  if (bridge.store.status !== 'ready') await once(bridge.store, 'ready');
  const left = await denied();
  // So it was true: a part of the request took effect.
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(names.length);
  let again = await ban();
  while (again.status === 503) again = await ban();
  expect(again.status).toBe(204);
  expect(await denied()).toBe(names.length);
});
