import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { scanKeys } from '../../../src/redis/connection/scan.ts';
import { fsck } from '../../../src/redis/fsck/fsck.ts';
import { createTool, ended, writeSource, type Tool } from '../tool.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let tool: Tool;

beforeEach(() => {
  tool = createTool();
});

function profiles(
  count: number,
  name: string,
  organization: (at: number) => string = () => 'acme',
): object[] {
  return Array.from({ length: count }, (_, at) => ({
    organizationId: organization(at),
    userId: `${name}-${at}`,
    username: `${name}-${at}`,
  }));
}

async function exists(organization: string, user: string): Promise<boolean> {
  return (await store.exists(`${tool.prefix}{${organization}}:p:${user}`)) === 1;
}

/** All keys but the state of the run, with their values. */
async function contents(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const keys of scanKeys(store, `${tool.prefix}{`))
    for (const key of keys) found[key] = (await store.dumpBuffer(key))?.toString('base64') ?? '';
  return found;
}

/** Starts an apply, pauses it once it writes, and lets its lease end. */
async function pausedApply(source: string, isWriting: () => Promise<boolean>, ...args: string[]) {
  const child = tool.start('apply', '--source', source, '--run', 'r', '--batch', '20', ...args);
  const end = ended(child);
  while (!(await isWriting())) await sleep(2);
  child.kill('SIGSTOP');
  await store.del(`${tool.prefix}migration:lock:r`);
  return {
    goOn: async () => {
      child.kill('SIGCONT');
      return await end;
    },
  };
}

/** The process that was paused has ended because of it, and Redis holds what the source has. */
async function expectWhole(source: string, paused: { code: number | null; err: string }): Promise<void> {
  expect(paused).toMatchObject({
    code: 1,
    err: expect.stringContaining('another process has taken over run r'),
  });
  expect(await tool.json('verify', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
  expect(await fsck(store, tool.prefix, { repair: false, onFault: () => {} })).toMatchObject({ found: 0 });
  expect(Object.keys(await contents()).filter((key) => key.endsWith(':loading'))).toEqual([]);
}

describe('an apply that was paused until another one took over', () => {
  test('writes nothing into an organization that the other one is loading', async () => {
    const source = writeSource({ profiles: profiles(1000, 'old') });
    const { goOn } = await pausedApply(source, () => exists('acme', 'old-100'), '--rate', '400');
    writeSource({ profiles: profiles(400, 'new') }, source);
    const other = ended(
      tool.start('apply', '--source', source, '--run', 'r', '--batch', '20', '--rate', '200'),
    );
    while (!(await exists('acme', 'new-50'))) await sleep(2);
    const paused = await goOn();
    expect(await other).toMatchObject({ code: 0 });
    await expectWhole(source, paused);
  });

  test('does not begin to load an organization that exists by now', async () => {
    const source = writeSource({ profiles: profiles(200, 'user', (at) => `org-${at}`) });
    const { goOn } = await pausedApply(source, () => exists('org-50', 'user-50'), '--rate', '200');
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
    const before = await contents();
    const paused = await goOn();
    expect(await contents()).toEqual(before);
    await expectWhole(source, paused);
  });

  test('writes nothing into an organization that exists', async () => {
    const withPicture = (picture: string): object[] =>
      profiles(600, 'user').map((each) => ({ ...each, profilePictureUrl: `https://x.example/${picture}` }));
    const source = writeSource({ profiles: withPicture('first') });
    await tool.json('apply', '--source', source, '--run', 'r');
    const pictureOf = async (user: string) => await store.hget(`${tool.prefix}{acme}:p:${user}`, 'pu');
    writeSource({ profiles: withPicture('second') }, source);
    const isWriting = async () => (await pictureOf('user-100')) === 'https://x.example/second';
    const { goOn } = await pausedApply(source, isWriting, '--rate', '200');
    writeSource({ profiles: withPicture('third') }, source);
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
    await expectWhole(source, await goOn());
  });

  test('gives no user a name that the source had before', async () => {
    const count = 2000;
    const own = profiles(count, 'user');
    const swapped = own.map((each, at) => ({ ...each, username: `user-${at ^ 1}` }));
    const source = writeSource({ profiles: own });
    await tool.json('apply', '--source', source, '--run', 'r');
    writeSource({ profiles: swapped }, source);
    let recorded = 0;
    const isRenaming = async () => {
      const before = recorded;
      recorded = await store.hlen(`${tool.prefix}{acme}:renames`);
      return recorded < before;
    };
    const { goOn } = await pausedApply(source, isRenaming);
    writeSource({ profiles: own }, source);
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
    await expectWhole(source, await goOn());
  });
});
