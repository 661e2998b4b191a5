import { expect, test } from '@jest/globals';
import { cutoverKey } from '../../../../src/redis/keys.ts';
import { runTool } from '../../../support/tools/admin.ts';
import { joinTestInstance } from '../../../support/legacy/instances.ts';
import { environmentFor, freshPrefix } from '../../../support/redis.ts';
import { useCleanup, useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();
const opened = useCleanup();

test('show names the mode, since when it is in force and the command that set it, and a switch that was lost', async () => {
  const prefix = freshPrefix();
  const env = environmentFor(prefix);
  expect(await runTool(env, 'cutover show')).toMatchObject({
    code: 0,
    out: 'Mode: native (none has been set yet; it becomes shadow when a bridge starts with LEGACY_BASE_URL)\n',
  });
  const instance = await joinTestInstance(store, prefix, true);
  opened.push(instance.close);
  expect((await runTool(env, 'cutover show')).out).toMatch(
    /^Mode: shadow\nSince: \d{4}-.*, set by: default\n$/,
  );
  const { out } = await runTool(env, 'cutover show --json');
  expect(JSON.parse(out)).toMatchObject({ mode: 'shadow', isStored: true, number: 0, by: 'default' });
  await store.hset(cutoverKey(prefix), 'lost', 7);
  expect((await runTool(env, 'cutover show')).out).toContain(
    '\nRedis has lost a later switch, and changes are refused',
  );
  expect(JSON.parse((await runTool(env, 'cutover show --json')).out)).toMatchObject({ hasLostSwitch: true });
});
