import { expect, test } from '@jest/globals';
import { startCommandProxy } from '../../../scripts/drills/tools/proxy.ts';
import { testRedisUrl } from '../../support/redis.ts';
import { createTool, writeSource } from '../tool.ts';

const profile = (userId: string, username: string) => ({ organizationId: 'acme', userId, username });

test('a username that is taken between reading and writing is reported, and all else is written', async () => {
  const tool = createTool();
  await tool.json('apply', '--source', writeSource({ organizations: [{ organizationId: 'acme' }] }));
  const rival = writeSource({ profiles: [profile('rival', 'wanted')] });
  const { hostname: host, port } = new URL(testRedisUrl());
  let isTaken = false;
  const proxy = await startCommandProxy({ host, port: Number(port) }, async (_, words) => {
    // A call that writes is the only one with a claim beside the record.
    const isWrite = words.join().includes('wanted') && words.some((word) => /^r\n\d+\n\d+$/.test(word));
    if (isWrite && !isTaken) {
      isTaken = true;
      await tool.json('apply', '--source', rival, '--run', 'rival');
    }
    return 'forward' as const;
  });
  const source = writeSource({ profiles: [profile('u1', 'wanted'), profile('u2', 'free')] });
  const through = createTool(proxy.url, tool.prefix);
  expect(await through.json('apply', '--source', source, '--run', 'r')).toMatchObject({
    exitCode: 1,
    json: { state: 'applied', created: 1, conflicts: 1, refused: 1 },
    err: expect.stringContaining('taken through the bridge while this ran: 1 username;'),
  });
  await proxy.close();
  const held = (await tool.contents())['profiles.ndjson'];
  expect(held).toContain('{"organizationId":"acme","userId":"rival","username":"wanted"}');
  expect(held).toContain('{"organizationId":"acme","userId":"u2","username":"free"}');
});
