import { beforeEach, describe, expect, test } from '@jest/globals';
import { switchMode } from '../../../src/cutover/switch/coordinator.ts';
import { cutoverRaiseEpoch, cutoverRemove, readCutover } from '../../../src/cutover/switch/registry.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import {
  migrateClaim,
  migrateFinishLoad,
  migratePicture,
  migrateProfiles,
  migratePrune,
  migrateRecords,
  migrateRename,
} from '../../../src/migration/engine/scripts.ts';
import { organizationsBeingLoaded } from '../../../src/migration/runs/runs.ts';
import { cutoverKey, loadingKey, organizationBase, profileKey } from '../../../src/redis/keys.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { until } from '../../support/until.ts';
import { createTool, ended, writeSource, type Tool } from '../../support/migrate-tool.ts';
import { freshPrefix } from '../../support/redis.ts';
import { valuesOf } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

/*
 * What a migrate apply that was held up still writes after the mode was switched in spite of it, or another apply has
 * taken over its run.
 */

const store = await useTestStore();
let prefix: string;
let base: string;
beforeEach(() => {
  prefix = freshPrefix();
  base = organizationBase(prefix, 'acme');
});

/** All that is stored of organizations. */
const contents = async () => await valuesOf(store, `${prefix}{`);

describe('a migration script', () => {
  const names = JSON.stringify([['ada', 'Ada', 'Ada', 'Eve', 'Eve']]);
  const profile = JSON.stringify([['ada', '', '', '', 'pu', 'https://x/1.png', 't', '']]);
  const scripts: Record<string, (epoch: number, claim: string) => Promise<unknown>> = {
    organizations: (epoch, claim) =>
      migrateRecords(store, base, epoch, '', claim, '[["exact","3","9","","",""]]', '', 0, 'organizations'),
    'api-keys': (epoch, claim) =>
      migrateRecords(store, base, epoch, '', claim, '[["ab","id","player","","",""]]', '', 0, 'api-keys'),
    objects: (epoch, claim) =>
      migrateRecords(store, base, epoch, '', claim, '[["d\\no","https://x"]]', '', 0, 'objects'),
    collections: (epoch, claim) =>
      migrateRecords(store, base, epoch, '', claim, '[["ada","d\\no"]]', '', 0, 'collections'),
    profiles: (epoch, claim) => migrateProfiles(store, base, epoch, '0', claim, profile, '', 0, 1, ''),
    denylist: (epoch, claim) =>
      migrateRecords(store, base, epoch, '0', claim, '[["root","root"]]', '', 0, 'denylist'),
    renames: (epoch, claim) => migrateRename(store, base, epoch, '0', claim, names, '', 0, 'make'),
    prune: (epoch, claim) =>
      migratePrune(store, base, epoch, '0', claim, '[["bob","",""]]', '', 0, 'profiles'),
    pictures: (epoch, claim) =>
      migratePicture(store, base, epoch, '', claim, 'bob', 'https://x/bob.png', 'file.png', 60_000),
  };

  beforeEach(async () => {
    await saveSettings(store, prefix, 'acme', defaultSettings);
    await store.hset(profileKey(base, 'bob'), { pu: 'https://x/bob.png', t: '' });
    await store.zadd(`${base}media`, Date.now(), 'file.png');
    await store.hset(`${base}claims`, 'r', 'r\n1\n5');
  });

  test.each(Object.keys(scripts))(
    'changes nothing under an epoch before the last switch: %s',
    async (entity) => {
      await cutoverRaiseEpoch(store, base, 2, '', '');
      const before = await contents();
      await expect(scripts[entity]?.(1, 'r\n1\n5')).rejects.toThrow('OUTDATED');
      expect(await contents()).toEqual(before);
    },
  );

  test.each(Object.keys(scripts))(
    'changes nothing under a claim that another apply has taken: %s',
    async (entity) => {
      const before = await contents();
      await expect(scripts[entity]?.(1, 'r\n1\n4')).rejects.toThrow('TAKENOVER');
      expect(await contents()).toEqual(before);
    },
  );

  test('takes no claim from a later apply of the run, and none of another run', async () => {
    await expect(migrateClaim(store, base, 'r\n1\n4', 'claim')).rejects.toThrow('TAKENOVER');
    expect(await migrateClaim(store, base, 'r\n1\n6', 'claim')).toEqual(['exists']);
    expect(await migrateClaim(store, base, 'another\n1\n1', 'claim')).toEqual(['exists']);
    expect(await store.hgetall(`${base}claims`)).toEqual({ r: 'r\n1\n6', another: 'another\n1\n1' });
  });
});

test('an organization loaded by a migration has the epoch in which it was loaded', async () => {
  const loaded = organizationBase(prefix, 'loaded');
  await store.set(loadingKey(loaded), 'run\n5');
  expect(await migrateFinishLoad(store, loaded, 5, '', 'run\n5', 1, 'exact', '1', '64', '', '', '0')).toBe(
    'finished',
  );
  expect(await store.hget(`${loaded}settings`, 'epoch')).toBe('5');
});

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

  /** Stops an apply once it writes, switches to reverse, lets it go on, and returns how it ended. */
  async function applyAcross(isWriting: () => Promise<boolean>) {
    const child = tool.start('apply', '--source', source, '--batch', '20', '--rate', '400', '--run', 'r');
    const end = ended(child);
    await until(isWriting);
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
    return { ...(await end), before };
  }

  test('writes nothing more, and says why', async () => {
    await saveSettings(store, prefix, 'acme', defaultSettings);
    const written = async () => (await store.exists(profileKey(base, 'u100'))) === 1;
    const { code, err, before } = await applyAcross(written);
    expect(err).toContain('the mode of the cut-over is reverse: Redis is the authority now');
    expect(code).toBe(1);
    expect(await contents()).toEqual(before);
  });

  test('neither loads more of an organization nor puts it into service', async () => {
    const loaded = async () => (await store.exists(profileKey(base, 'u100'))) === 1;
    const { code, err, before } = await applyAcross(loaded);
    expect(err).toContain('the mode of the cut-over is reverse: Redis is the authority now');
    expect(code).toBe(1);
    expect(await contents()).toEqual(before);
    expect(await store.exists(`${base}settings`)).toBe(0);

    await store.hset(cutoverKey(prefix), 'mode', 'mirror');
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
  });
});
