import { expect, test } from '@jest/globals';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { putRecords } from '../../../src/migration/engine/write/put.ts';
import { startRedis } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';
import { createTestContext } from '../context.ts';
import { createTool, writeSource } from '../tool.ts';

test('an unknown reply of a script is an error, not a success', async () => {
  const { prefix } = createTool();
  const store = await openTestStore();
  try {
    store.evalsha = () => Promise.resolve(['postponed']);
    const context = createTestContext(store, prefix, { claim: 'r\n0\n1' });
    const record = {
      organizationId: 'acme',
      datasourceId: 'd',
      objectDefinitionId: 'o',
      url: 'https://x.example',
    };
    await expect(putRecords(context, 'objects', [{ record }])).rejects.toThrow(
      'Redis gave an unknown reply for objects ("postponed")',
    );
  } finally {
    await closeRedis(store);
  }
});

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
