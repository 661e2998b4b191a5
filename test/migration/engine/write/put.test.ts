import { expect, test } from '@jest/globals';
import {
  denylistKey,
  organizationBase,
  profileKey,
  stageKey,
  stageOwnerKey,
} from '../../../../src/redis/keys.ts';
import { putRecords } from '../../../../src/migration/engine/write/put.ts';
import { startRedis } from '../../../support/redis.ts';
import { interceptCalls } from '../../../support/store.ts';
import { createTestContext } from '../../test-context.ts';
import { startProxied, testProxied } from '../../proxied.ts';
import { until } from '../../../support/until.ts';
import { createTool, writeSource } from '../../../support/tools/migrate.ts';
import { useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();

test('an unknown reply of a script is an error, not a success', async () => {
  const { prefix } = createTool();
  const puzzling = interceptCalls(store, (make, command) =>
    command === 'evalsha' ? Promise.resolve(['applied', ['postponed'], []]) : make(),
  );
  const context = createTestContext(puzzling, prefix, { claim: 'r\n0\n1' });
  const record = {
    organizationId: 'acme',
    datasourceId: 'd',
    objectDefinitionId: 'o',
    url: 'https://x.example',
  };
  await expect(putRecords(context, 'objects', [{ record }])).rejects.toThrow(
    'Redis gave an unknown reply for objects ("postponed")',
  );
});

testProxied(
  'a username that a denylist overwrite may deny waits for it, and all others with it',
  async () => {
    const tool = createTool();
    const organizations = [{ organizationId: 'acme' }];
    await tool.json('apply', '--source', writeSource({ organizations }), '--run', 'first');
    const base = organizationBase(tool.prefix, 'acme');
    await store.set(stageOwnerKey(base), 'overwrite');
    await store.hset(stageKey(base), 'wanted', '');
    const profiles = ['wanted', 'free'].map((username) => ({
      organizationId: 'acme',
      userId: `user-${username}`,
      username,
    }));
    let tries = 0;
    const proxied = await startProxied(tool, (_, words) => {
      if (words.some((word) => word.includes('user-wanted'))) tries += 1;
      return 'forward';
    });
    const applied = proxied.tool.json('apply', '--source', writeSource({ profiles }), '--run', 'r');
    // By then it was told to wait: the first call may only say that Redis does not know the script.
    await until(() => tries > 2);
    expect(await store.exists(profileKey(base, 'user-wanted'))).toBe(0);
    await store.rename(stageKey(base), denylistKey(base, '0'));
    await store.del(stageOwnerKey(base));
    expect(await applied.finally(proxied.close)).toMatchObject({
      exitCode: 0,
      json: { created: 2, issues: { profiles: { 'denied-name-in-use': 1 } } },
    });
  },
);

test('wide rows are written in calls of bounded size', async () => {
  // A server that refuses arguments above 1 MiB.
  const redis = await startRedis(['--proto-max-bulk-len', '1mb']);
  try {
    const tool = createTool(redis.url);
    const organizations = [{ organizationId: 'acme' }];
    await tool.json('apply', '--source', writeSource({ organizations }), '--run', 'first');
    const profiles = Array.from({ length: 40 }, (_, at) => ({
      organizationId: 'acme',
      userId: `u${at}`,
      username: `name-${at}`,
      profilePictureUrl: `https://x.example/${'x'.repeat(128 * 1024)}`,
    }));
    const source = writeSource({ profiles });
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({
      exitCode: 0,
      json: { created: 40 },
    });
    expect(await tool.json('verify', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
  } finally {
    await redis.stop();
  }
});
