import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { denylistKey, organizationBase } from '../../../src/redis/keys.ts';
import { changeComparison } from '../../../src/redis/reindex/reindex.ts';
import { useTestStore } from '../../support/use-store.ts';
import { describeProxied, startProxied } from '../proxied.ts';
import { createTool, newFolder, writeSource } from '../../support/tools/migrate.ts';

const store = await useTestStore();

describeProxied('while the comparison of names is changed', () => {
  const organizationId = 'acme';
  const source = writeSource({
    profiles: [{ organizationId, userId: 'u1', username: 'Ann' }],
    denylist: ['Root', 'admin'].map((username) => ({ organizationId, username })),
  });
  const on = ['--source', source, '--run', 'r'];

  test.each([
    ['verify', ['verify', ...on], 'No differences.'],
    ['apply --prune', ['apply', ...on, '--prune', '--prune-at-most', '9'], 'Removed'],
    ['export', ['export', '--to', join(newFolder(), 'export')], 'Exported'],
  ])('%s takes no name for missing or gone, and succeeds if run again', async (_, command, said) => {
    const tool = createTool();
    await tool.text('apply', ...on);
    const base = organizationBase(tool.prefix, organizationId);
    let changed: unknown;
    const proxied = await startProxied(tool, async (_at, [name = '']) => {
      if (/^scan$/i.test(name)) changed ??= await changeComparison(store, base, 'case-insensitive');
      return 'forward' as const;
    });
    expect(await proxied.tool.text(...command)).toMatchObject({
      exitCode: 1,
      err: 'error: names of organization "acme" are compared in another way than when this began (admin org set): run the same command again\n',
    });
    await proxied.close();
    expect(changed).toMatchObject({ kind: 'rebuilt' });
    expect(await store.hgetall(denylistKey(base, '1'))).toEqual({ root: 'Root', admin: '' });
    expect(await tool.text(...command)).toMatchObject({
      exitCode: 0,
      out: expect.stringContaining(said),
    });
  });
});
