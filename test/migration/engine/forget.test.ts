import { describe, expect, test } from '@jest/globals';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { startBridge } from '../../support/bridge.ts';
import { freshPrefix, startRedis } from '../../support/redis.ts';
import { faultsIn, keysOf, openTestStore } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';
import { until } from '../../support/until.ts';
import { createTool, ended, newFolder, writeSource, type Tool } from '../../support/tools/migrate.ts';

const store = await useTestStore();

const source = writeSource({
  organizations: [{ organizationId: 'acme' }],
  profiles: [{ organizationId: 'acme', userId: 'u1', username: 'ann' }],
});

async function applied(): Promise<Tool> {
  const tool = createTool();
  expect(await tool.json('apply', '--source', source, '--run', 'first')).toMatchObject({ exitCode: 0 });
  return tool;
}

test('a run is forgotten once its operator agrees, and its records stay', async () => {
  const tool = await applied();
  const before = await tool.contents();
  const refused = await tool.answering('n', 'forget', '--run', 'first');
  expect(refused).toMatchObject({ exitCode: 1, err: 'error: nothing was forgotten\n' });
  expect(refused.question).toBe(
    `Forget run first from ${source}? Its records stay; the next apply reads everything. [y/N] `,
  );
  expect((await tool.json('status')).json).toMatchObject({ runs: [{ run: 'first' }] });

  // As an apply that was killed leaves it.
  await store.hset(`${tool.prefix}{acme}:claims`, 'first', 'first\n0\n1');
  expect(await tool.answering('y', 'forget', '--run', 'first')).toMatchObject({ exitCode: 0 });
  expect((await tool.json('status')).json).toEqual({ command: 'status', runs: [] });
  const left = (await keysOf(store, tool.prefix)).filter((key) => /:migration:|:claims$/.test(key));
  // The next run's claims must be higher than all before.
  expect(left).toEqual([`${tool.prefix}migration:token`]);
  expect(await tool.contents()).toEqual(before);
  expect(await tool.json('forget', '--run', 'first', '--yes')).toMatchObject({
    exitCode: 1,
    err: 'error: there is no run first: no migration has been started yet\n',
  });
});

test('a run that was killed while it read its source for the first time is shown, and can be forgotten', async () => {
  const organizations = [{ organizationId: 'acme' }];
  const tool = createTool();
  await tool.json('apply', '--source', writeSource({ organizations }), '--run', 'first');
  const profiles = Array.from({ length: 20_000 }, (_, n) => ({ organizationId: 'acme', userId: `u${n}` }));
  const child = tool.start('apply', '--source', writeSource({ profiles }), '--run', 'killed', '--batch', '1');
  const end = ended(child);
  const statusOf = async (): Promise<unknown> => (await tool.json('status', '--run', 'killed')).json['phase'];
  await until(async () => (await statusOf()) === 'reading');
  child.kill('SIGKILL');
  await end;

  expect(await statusOf()).toBe('interrupted');
  expect(await tool.text('status', '--run', 'killed')).toMatchObject({
    out: 'Run killed: interrupted while it read the source; nothing has been written yet\n',
  });
  const forgotten = await tool.answering('y', 'forget', '--run', 'killed');
  expect(forgotten).toMatchObject({ exitCode: 0, out: 'Forgot run killed.\n' });
  expect((await keysOf(store, tool.prefix)).filter((key) => key.includes('killed'))).toEqual([]);
  expect(await tool.json('forget', '--run', 'killed', '--yes')).toMatchObject({
    exitCode: 1,
    err: 'error: there is no run killed (existing runs: first)\n',
  });
});

describe('a load that has filled Redis is rolled back', () => {
  const folder = newFolder();
  const profiles = (organizationId: string, count: number) =>
    Array.from({ length: count }, (_, n) => ({ organizationId, userId: `u${n}`, username: `${n}` }));

  test.each([
    ['forget', ['forget', '--run', 'r', '--yes']],
    ['apply --fresh', ['apply', '--run', 'r', '--fresh', '--source', folder]],
  ])('by %s', async (_, args) => {
    const redis = await startRedis();
    const full = await openTestStore(redis.url);
    try {
      const tool = createTool(redis.url, 'pb:');
      writeSource({ profiles: profiles('acme', 1) }, folder);
      const apply = ['apply', '--source', folder, '--run', 'r'];
      expect(await tool.json(...apply)).toMatchObject({ exitCode: 0 });
      await full.config('SET', 'maxmemory', '4mb');
      writeSource({ profiles: [...profiles('acme', 1), ...profiles('blue', 50_000)] }, folder);
      const overflowing = await tool.json(...apply);
      expect(overflowing).toMatchObject({ exitCode: 1, err: expect.stringContaining('Redis is full') });
      expect(await keysOf(full, 'pb:{blue}:p:')).not.toEqual([]);

      await full.config('SET', 'maxmemory', '3mb');
      writeSource({ profiles: [...profiles('acme', 1), ...profiles('blue', 1)] }, folder);
      expect(await tool.json(...args)).toMatchObject({ exitCode: 0 });
      expect((await keysOf(full, 'pb:{blue}:')).length).toBeLessThan(10);
      expect(await faultsIn(full, 'pb:')).toEqual([]);
    } finally {
      await closeRedis(full);
      await redis.stop();
    }
  });
});

test('a rehearsal is deleted to the last key, and nothing else is', async () => {
  const tool = await applied();
  const beside = createTool(undefined, `${tool.prefix.slice(0, -1)}-2:`);
  await beside.json('apply', '--source', source);
  const count = (await keysOf(store, tool.prefix)).length;
  const call = await tool.answering('yes', 'forget', '--rehearsal');
  expect(call).toMatchObject({
    exitCode: 0,
    question: `Delete ${count} keys under the prefix ${tool.prefix}? [y/N] `,
  });
  expect(await keysOf(store, tool.prefix)).toEqual([]);
  expect(await beside.json('verify', '--source', source)).toMatchObject({ exitCode: 0 });
  expect((await tool.json('forget', '--rehearsal')).json).toMatchObject({ keys: 0 });
});

test('without a terminal nothing is forgotten unless --yes is given', async () => {
  const tool = await applied();
  for (const what of [['--run', 'first'], ['--rehearsal']]) {
    expect(await tool.json('forget', ...what)).toMatchObject({
      exitCode: 2,
      err: 'error: there is no terminal to ask on: add --yes\n',
    });
  }
  expect(await tool.json('forget', '--run', 'first', '--yes')).toMatchObject({
    exitCode: 0,
    json: { run: 'first' },
  });
  expect((await tool.json('forget', '--rehearsal', '--yes')).exitCode).toBe(0);
});

test('the keys of a service, even under a longer prefix, are not deleted as a rehearsal', async () => {
  const bridge = await startBridge({ keyPrefix: freshPrefix() });
  await bridge.close();
  const { keyPrefix } = bridge.config;
  for (const prefix of [keyPrefix, keyPrefix.slice(0, -1)]) {
    const call = await createTool(bridge.config.redisUrl, prefix).json('forget', '--rehearsal', '--yes');
    expect(call).toMatchObject({ exitCode: 1, err: expect.stringContaining('a service uses or has used') });
  }
});

test.each(['pb:', 'p'])(
  '%j, with which the keys of the service begin by default, is no rehearsal',
  async (prefix) => {
    expect(await createTool(undefined, prefix).json('forget', '--rehearsal', '--yes')).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('is the prefix of the service itself'),
    });
  },
);

test('forget without exactly one of --run and --rehearsal is wrong usage', async () => {
  for (const flags of [[], ['--run', 'a', '--rehearsal']]) {
    expect(await createTool().json('forget', '--yes', ...flags)).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('choose what to forget: --run NAME, or --rehearsal'),
    });
  }
});
