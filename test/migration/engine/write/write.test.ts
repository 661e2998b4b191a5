import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { applyRun } from '../../../../src/migration/engine/apply.ts';
import { openTestStore } from '../../../support/store.ts';
import { withChosen } from '../../test-context.ts';
import { startProxied, testProxied } from '../../proxied.ts';
import { createTool, writeSource } from '../../../support/tools/migrate.ts';

const profile = (userId: string, username: string) => ({ organizationId: 'acme', userId, username });

testProxied.each([
  {
    rule: 'abort',
    exitCode: 1,
    counts: { created: 1, conflicts: 1, refused: 1 },
    error: '1 username was taken through the bridge while this ran:',
    left: [],
  },
  {
    rule: 'drop-username',
    exitCode: 0,
    counts: { created: 2, conflicts: 1, refused: 0 },
    error: '',
    left: ['{"organizationId":"acme","userId":"u1"}'],
  },
])(
  'a username that is taken between reading and writing is reported, and all else is written ($rule)',
  async ({ rule, exitCode, counts, error, left }) => {
    const tool = createTool();
    await tool.json('apply', '--source', writeSource({ organizations: [{ organizationId: 'acme' }] }));
    const rival = writeSource({ profiles: [profile('rival', 'wanted')] });
    let isTaken = false;
    const proxied = await startProxied(tool, async (_, words) => {
      // A call that writes is the only one with a claim beside the record.
      const isWrite = words.join().includes('wanted') && words.some((word) => /^r\n\d+\n\d+$/.test(word));
      if (isWrite && !isTaken) {
        isTaken = true;
        await tool.json('apply', '--source', rival, '--run', 'rival');
      }
      return 'forward' as const;
    });
    const source = writeSource({ profiles: [profile('u1', 'wanted'), profile('u2', 'free')] });
    const args = ['--source', source, '--run', 'r', '--on-conflict', rule];
    expect(await proxied.tool.json('apply', ...args)).toMatchObject({
      exitCode,
      json: { state: 'applied', ...counts },
      err: expect.stringContaining(error),
    });
    await proxied.close();
    const held = (await tool.contents())['profiles.ndjson']?.split('\n');
    expect(held).toEqual([
      '{"organizationId":"acme","userId":"rival","username":"wanted"}',
      ...left,
      '{"organizationId":"acme","userId":"u2","username":"free"}',
      '',
    ]);
  },
);

test('API keys are written once all else is in place', async () => {
  const tool = createTool();
  await tool.json('apply', '--source', writeSource({ organizations: [{ organizationId: 'acme' }] }));
  const source = writeSource({
    profiles: [profile('u1', 'ann')],
    'api-keys': [{ organizationId: 'acme', apiKey: 'secret', role: 'admin' }],
  });
  const store = await openTestStore();
  const evalsha = store.evalsha.bind(store) as (...call: unknown[]) => Promise<unknown>;
  const written: string[] = [];
  store.evalsha = async (...call: unknown[]) => {
    const isWrite = call.some((word) => /^r\n\d+\n\d+$/.test(String(word)));
    const isProfile = isWrite && call.join().includes('"ann"');
    if (isProfile) await sleep(100);
    const reply = await evalsha(...call);
    if (isProfile) written.push('profile');
    if (isWrite && call.includes('api-keys')) written.push('key');
    return reply;
  };
  await withChosen(tool, source, { store }, async (chosen, context) => {
    expect(await applyRun(chosen, context, {})).toMatchObject({ kind: 'applied' });
  });
  expect(written).toEqual(['profile', 'key']);
});
