import { expect, test } from '@jest/globals';
import { requestFullRound, readRun } from '../../../src/migration/runs/runs.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { loadingKey, organizationBase } from '../../../src/redis/keys.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { keysOf } from '../../support/store.ts';
import { createTool, ended, writeSource, type Tool } from '../../support/tools/migrate.ts';
import { until } from '../../support/until.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();

/** Applies, and says whether that was a round that reads everything also where a source could leave rows out. */
async function readsAll(tool: Tool, apply: readonly string[]): Promise<boolean> {
  expect((await tool.json(...apply)).exitCode).toBe(0);
  return (await readRun({ store, prefix: tool.prefix }, 'r'))?.since === undefined;
}

test('a verify that finds a difference during a round makes the next round read everything', async () => {
  const tool = createTool();
  const rows = (at: string) =>
    Array.from({ length: 100 }, (_, user) => ({
      organizationId: 'acme',
      userId: `u${user}`,
      updatedAt: `2026-01-0${at}T00:00:00Z`,
    }));
  const source = writeSource({ profiles: rows('1') });
  const apply = ['apply', '--source', source, '--run', 'r'];
  await tool.json(...apply);
  writeSource({ profiles: rows('2') }, source);
  await requestFullRound({ store, prefix: tool.prefix }, 'r');
  const child = tool.start(...apply, '--rate', '100', '--batch', '10');
  const end = ended(child);
  const first = Date.parse('2026-01-02T00:00:00Z');
  await until(async () => (await store.hget(`${tool.prefix}{acme}:p:u0`, 't')) === String(first));
  await requestFullRound({ store, prefix: tool.prefix }, 'r');
  expect(JSON.parse((await end).out)).toMatchObject({ updated: 100 });
  for (const all of [true, false]) expect(await readsAll(tool, apply)).toBe(all);
});

test('a verify during the first round of a run makes the next round read everything', async () => {
  const tool = createTool();
  const updatedAt = '2026-01-01T00:00:00Z';
  const source = writeSource({ profiles: [{ organizationId: 'acme', userId: 'u1', updatedAt }] });
  const apply = ['apply', '--source', source, '--run', 'r'];
  // As while that round is still reading.
  await store.sadd(`${tool.prefix}migration:runs`, 'r');
  await requestFullRound({ store, prefix: tool.prefix }, 'r');
  for (const all of [true, true, false]) expect(await readsAll(tool, apply)).toBe(all);
});

test('a refused apply leaves the run as it was, with --fresh as well', async () => {
  const tool = createTool();
  const profile = (organizationId: string) => ({ organizationId, userId: 'u1' });
  const source = writeSource({ profiles: [profile('acme')] });
  const apply = ['apply', '--source', source, '--run', 'r'];
  await tool.json(...apply);
  const status = async () => (await tool.json('status', '--run', 'r')).json;
  const before = await status();
  expect(before).toMatchObject({ phase: 'finished' });
  writeSource({ profiles: [profile('acme'), profile('blue'), { organizationId: 'blue' }] }, source);
  for (const fresh of [[], ['--fresh']]) {
    expect(await tool.json(...apply, ...fresh)).toMatchObject({ exitCode: 1, json: { state: 'refused' } });
    expect(await status()).toEqual(before);
  }
});

test('a first apply that fails before it writes leaves nothing', async () => {
  const user = { organizationId: 'acme', userId: 'u1' };
  const loadedElsewhere = async (tool: Tool): Promise<unknown> =>
    await store.set(loadingKey(organizationBase(tool.prefix, 'acme')), 'other\n0\n1');
  const alreadyThere = async (tool: Tool): Promise<unknown> =>
    await saveSettings(store, tool.prefix, 'acme', defaultSettings);
  for (const [profiles, prepare, ...options] of [
    [[{ organizationId: 'acme' }], alreadyThere],
    [[{ organizationId: 'acme' }, user], async () => {}],
    [[user], async () => {}, '--org', 'other'],
    [[user], alreadyThere, '--org', 'other'],
    [[user], loadedElsewhere],
  ] as const) {
    const tool = createTool();
    await prepare(tool);
    const before = await keysOf(store, tool.prefix);
    const call = await tool.json('apply', '--source', writeSource({ profiles }), '--run', 'r', ...options);
    expect(call.exitCode).not.toBe(0);
    // The next run's claims must be higher than all before.
    expect(await keysOf(store, tool.prefix)).toEqual([...before, `${tool.prefix}migration:token`].sort());
  }
});
