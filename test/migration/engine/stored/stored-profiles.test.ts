import { expect, test } from '@jest/globals';
import { organizationBase } from '../../../../src/redis/keys.ts';
import { readProfiles } from '../../../../src/migration/engine/stored/read.ts';
import { migrateReadProfiles } from '../../../../src/migration/engine/scripts.ts';
import { createTestContext } from '../../test-context.ts';
import { createTool, writeSource } from '../../../support/tools/migrate.ts';
import { useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();

test('wide profiles are read some at a time, and all of them', async () => {
  const { json, prefix } = createTool();
  const profiles = Array.from({ length: 20 }, (_, at) => ({
    organizationId: 'acme',
    userId: `u${at}`,
    username: `name-${at}`,
    profilePictureUrl: `https://x.example/${'x'.repeat(128 * 1024)}`,
  }));
  await json('apply', '--source', writeSource({ profiles }));
  const wanted = profiles.map(({ userId, username }) => [userId, username] as const);
  const base = organizationBase(prefix, 'acme');
  expect(await migrateReadProfiles(store, base, '0', JSON.stringify(wanted))).toHaveLength(2);
  const context = createTestContext(store, prefix);
  const organization = await context.organizations.find('acme');
  const holders = (await readProfiles(context, organization, wanted)).map(({ holder }) => holder);
  expect(holders).toEqual(profiles.map(({ userId }) => userId));
});
