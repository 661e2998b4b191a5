import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ReverseModeError, whileRegistered } from '../../../src/cli/migrate/cutover.ts';
import type { Mode } from '../../../src/cutover/modes.ts';
import {
  defineCutoverScripts,
  readCutover,
  type CutoverStore,
} from '../../../src/cutover/switch/registry.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { cutoverKey } from '../../../src/redis/keys.ts';
import { until } from '../../cutover/until.ts';
import { createTool, writeSource } from '../../migration/tool.ts';
import { freshPrefix } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';

let store: CutoverStore;
let prefix: string;
beforeAll(async () => {
  store = defineCutoverScripts(await openTestStore());
});
afterAll(() => closeRedis(store));
beforeEach(() => {
  prefix = freshPrefix();
});

const setMode = (mode: Mode) =>
  store.hset(cutoverKey(prefix), { mode, epoch: 1, since: Date.now(), by: 'test' });

const { signal } = new AbortController();
const source = () => writeSource({ profiles: [{ organizationId: 'acme', userId: 'ada', username: 'Ada' }] });

test('a migration is registered while it writes, and acknowledges no switch before it has ended', async () => {
  await setMode('mirror');
  await whileRegistered({ store, prefix, signal }, async () => {
    expect((await readCutover(store, prefix)).instances).toMatchObject([{ kind: 'migrate' }]);
    await store.cutoverBegin(cutoverKey(prefix), 'token', 'mirror', 'shadow', 60_000);
    await until(async () => ((await readCutover(store, prefix)).instances[0]?.epoch ?? 0) > 1);
    expect((await readCutover(store, prefix)).instances).toMatchObject([{ acknowledged: undefined }]);
  });
  expect((await readCutover(store, prefix)).instances).toEqual([]);
});

test('without a cut-over nothing is registered', async () => {
  await whileRegistered({ store, prefix, signal }, async () => {
    expect(await store.exists(cutoverKey(prefix))).toBe(0);
  });
});

test('a migration stops once a switch to reverse has been made in spite of it', async () => {
  await setMode('mirror');
  const stopped = whileRegistered({ store, prefix, signal }, async (ending) => {
    await setMode('reverse');
    await until(() => ending.aborted);
  });
  await expect(stopped).rejects.toThrow(ReverseModeError);
});

test.each([['apply'], ['apply', '--follow']])(
  'migrate %s %s writes nothing in reverse',
  async (...command) => {
    const tool = createTool(undefined, prefix);
    await setMode('reverse');
    const { exitCode, err } = await tool.text(...command, '--source', source());
    expect(err).toMatch(/^error: the mode of the cut-over is reverse: .* admin cutover set mirror\n$/);
    expect(exitCode).toBe(1);
    expect(await store.keys(`${prefix}{*`)).toEqual([]);
  },
);

test('migrate apply writes in mirror as it does without a cut-over', async () => {
  const tool = createTool(undefined, prefix);
  await setMode('mirror');
  const { exitCode, json } = await tool.json('apply', '--source', source());
  expect({ exitCode, created: json['created'] }).toEqual({ exitCode: 0, created: 1 });
});
