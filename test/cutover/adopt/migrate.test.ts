import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { defineMigrationScripts, type MigrationStore } from '../../../src/migration/engine/scripts.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { organizationBase, profileKey } from '../../../src/redis/keys.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { freshPrefix } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';

/** When the profile was adopted, and the denylist. */
const adoptedAt = 1_000_000;

let store: MigrationStore;
let base: string;
beforeAll(async () => {
  store = defineMigrationScripts(await openTestStore());
});
afterAll(() => closeRedis(store));
beforeEach(async () => {
  const prefix = freshPrefix();
  base = organizationBase(prefix, 'acme');
  await saveSettings(store, prefix, 'acme', defaultSettings);
  await store.hset(profileKey(base, 'ada'), { pu: 'https://x/adopted.png', t: '', as: 7, at: adoptedAt });
  await store.hset(`${base}cutover:adoptions`, 'denylist-at', adoptedAt);
});

/** Applies one profile of a source whose snapshot was opened at this time. */
async function applyProfile(snapshotAt: number | '', url: string): Promise<string | undefined> {
  const row = ['ada', '', '5000', '', '', '', 'pu', url, 't', '5000'];
  const reply = await store.migrateProfiles(base, '0', 'write', JSON.stringify([row]), 1, '', snapshotAt);
  return reply[0] === 'applied' ? reply[1][0] : reply[0];
}

async function applyDenied(snapshotAt: number | ''): Promise<string | undefined> {
  const reply = await store.migrateDenylist(base, 'write', '0', '[["x","x"]]', snapshotAt);
  return reply[0] === 'applied' ? reply[1][0] : reply[0];
}

test('what was adopted after the snapshot of a source began stays as it is', async () => {
  expect(await applyProfile(adoptedAt - 1, 'https://x/older.png')).toBe('kept');
  expect(await store.hget(profileKey(base, 'ada'), 'pu')).toBe('https://x/adopted.png');
  expect(await applyDenied(adoptedAt - 1)).toBe('kept');
});

test('a source of unknown age overwrites nothing that was adopted', async () => {
  expect(await applyProfile('', 'https://x/unknown.png')).toBe('kept');
  expect(await applyDenied('')).toBe('kept');
});

test('a snapshot that began after the adoption is applied, and the numbers of adoptions go on', async () => {
  expect(await applyProfile(adoptedAt + 1, 'https://x/newer.png')).toBe('updated');
  expect(await store.hgetall(profileKey(base, 'ada'))).toEqual({
    pu: 'https://x/newer.png',
    t: '5000',
    as: '7',
    at: String(adoptedAt),
  });
  expect(await applyProfile(adoptedAt + 1, 'https://x/newer.png')).toBe('unchanged');
  expect(await applyDenied(adoptedAt + 1)).toBe('created');
});
