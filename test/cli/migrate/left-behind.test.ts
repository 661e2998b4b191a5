import { beforeEach, describe, expect, test } from '@jest/globals';
import { switchMode } from '../../../src/cutover/switch/coordinator.ts';
import { cutoverRemove, readCutover } from '../../../src/cutover/switch/registry.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { organizationsBeingLoaded } from '../../../src/migration/runs/runs.ts';
import { cutoverKey, organizationBase, profileKey } from '../../../src/redis/keys.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { until } from '../../support/until.ts';
import { createTool, ended, writeSource, type Tool } from '../../support/tools/migrate.ts';
import { freshPrefix } from '../../support/redis.ts';
import { valuesOf } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

/* What a migrate apply that was held up still writes after the mode was switched in spite of it. */

const store = await useTestStore();
let prefix: string;
let base: string;
beforeEach(() => {
  prefix = freshPrefix();
  base = organizationBase(prefix, 'acme');
});

/** All that is stored of organizations. */
const contents = async () => await valuesOf(store, `${prefix}{`);

describe('a migrate apply that is stopped while the mode is switched to reverse', () => {
  const profiles = Array.from({ length: 2000 }, (_, n) => ({
    organizationId: 'acme',
    userId: `u${n}`,
    username: `name-${n}`,
  }));
  const source = writeSource({ profiles });
  let tool: Tool;
  beforeEach(async () => {
    tool = createTool(undefined, prefix);
    await store.hset(cutoverKey(prefix), { mode: 'mirror', epoch: 1, since: Date.now(), by: 'test' });
  });

  /** Stops an apply once it writes, switches to reverse, and lets it go on: it writes nothing more, and says why. */
  async function applyAcross(): Promise<void> {
    const child = tool.start('apply', '--source', source, '--batch', '20', '--rate', '400', '--run', 'r');
    const end = ended(child);
    await until(async () => (await store.exists(profileKey(base, 'u100'))) === 1);
    child.kill('SIGSTOP');
    const { instances } = await readCutover(store, prefix);
    for (const { id } of instances)
      await cutoverRemove(store, cutoverKey(prefix), id, 'assumed to have stopped');
    const outcome = await switchMode(store, prefix, {
      from: 'mirror',
      to: 'reverse',
      holdMs: 3000,
      by: 'test',
      signal: new AbortController().signal,
      onProgress: () => {},
      beingLoaded: () => organizationsBeingLoaded(store, prefix),
      obstacles: () => Promise.resolve([]),
    });
    expect(outcome.kind).toBe('switched');
    const before = await contents();
    child.kill('SIGCONT');
    const { code, err } = await end;
    expect(err).toContain('the mode of the cut-over is reverse: Redis is the authority now');
    expect(code).toBe(1);
    expect(await contents()).toEqual(before);
  }

  test('writes nothing more, and says why', async () => {
    await saveSettings(store, prefix, 'acme', defaultSettings);
    await applyAcross();
  });

  test('neither loads more of an organization nor puts it into service', async () => {
    await applyAcross();
    expect(await store.exists(`${base}settings`)).toBe(0);

    await store.hset(cutoverKey(prefix), 'mode', 'mirror');
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
  });
});
