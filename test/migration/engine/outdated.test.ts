import { beforeEach, describe, expect, test } from '@jest/globals';
import { cutoverRaiseEpoch } from '../../../src/cutover/switch/registry.ts';
import {
  migratePicture,
  migrateProfiles,
  migratePrune,
  migrateRecords,
  migrateRename,
} from '../../../src/migration/engine/scripts.ts';
import { profileKey } from '../../../src/redis/keys.ts';
import { newOrganization, valuesOf } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

/* What the scripts do for an apply that was held up until the mode was switched or another apply took over its run. */

const store = await useTestStore();
let prefix: string;
let base: string;
beforeEach(async () => {
  ({ prefix, base } = await newOrganization(store));
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
      migratePicture(store, base, epoch, '', claim, 'bob', 'https://x/bob.png', '', 0, 'file.png', 60_000),
  };

  beforeEach(async () => {
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
});
