import { spawnSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { thisProcess, type ProcessIdentity } from '../../../src/lib/system/process-identity.ts';
import { whileLocked } from '../../../src/migration/runs/lock.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { freshPrefix } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';
import { createTestContext } from '../test-context.ts';
import { startProxied, testProxied } from '../proxied.ts';
import { createTool, writeSource } from '../../support/tools/migrate.ts';

const source = writeSource({ profiles: [{ organizationId: 'acme', userId: 'u1' }] });

/** The id of a process that has just ended. */
function endedPid(): number {
  return spawnSync('true').pid;
}

/** Applies a run whose lock another process holds. */
async function applyBeside(holder: ProcessIdentity): Promise<{ exitCode: number; err: string }> {
  const tool = createTool();
  const store = await openTestStore();
  const lock = JSON.stringify({ token: 'another', ...holder });
  await store.set(`${tool.prefix}migration:lock:r`, lock, 'PX', 15_000);
  await closeRedis(store);
  return await tool.json('apply', '--source', source, '--run', 'r');
}

test('a lock whose process has ended is taken over at once', async () => {
  expect(await applyBeside({ ...thisProcess(), pid: endedPid() })).toMatchObject({ exitCode: 0 });
});

test('a lock whose process id now belongs to another process is taken over at once', async () => {
  expect(await applyBeside({ ...thisProcess(), started: '1' })).toMatchObject({ exitCode: 0 });
});

test('a lock that its process could not release is taken over by that process at once', async () => {
  const [prefix, first, second] = [freshPrefix(), await openTestStore(), await openTestStore()];
  const lost = whileLocked(createTestContext(first, prefix), 'r', () => {
    first.disconnect();
    return Promise.reject(new Error('lost'));
  });
  await expect(lost).rejects.toThrow('lost');
  const context = createTestContext(second, prefix);
  expect(await whileLocked(context, 'r', () => Promise.resolve('taken over'))).toBe('taken over');
  await closeRedis(second);
});

testProxied('a lock whose reply was lost is taken over by its process at once', async () => {
  const store = await openTestStore();
  const context = createTestContext(store, freshPrefix());
  const work = async () => await whileLocked(context, 'r', () => Promise.resolve('taken'));
  // Redis knows the script from now on, so it comes as one command.
  await work();
  const proxied = await startProxied(createTool(undefined, context.prefix), (_, words) =>
    words.includes(`${context.prefix}migration:lock:r`) ? 'lose-reply' : 'forward',
  );
  const cutOff = await openTestStore(proxied.tool.env['REDIS_URL']);
  await expect(whileLocked({ ...context, store: cutOff }, 'r', () => Promise.resolve())).rejects.toThrow(
    'max retries',
  );
  expect(await store.exists(`${context.prefix}migration:lock:r`)).toBe(1);
  expect(await work()).toBe('taken');
  await closeRedis(cutOff);
  await proxied.close();
  await closeRedis(store);
});

test.each([
  ['another PID namespace of the same host', { namespace: 'pid:[1]' }],
  ['another machine with the same host name', { boot: 'another' }],
])('a lock of a process in %s is respected, since the process may still be running', async (_, elsewhere) => {
  const pid = endedPid();
  expect(await applyBeside({ ...thisProcess(), ...elsewhere, pid })).toMatchObject({
    exitCode: 1,
    err: expect.stringContaining(`is being applied by process ${pid}`),
  });
});
