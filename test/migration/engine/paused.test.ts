import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readRun, runNames } from '../../../src/migration/runs/runs.ts';
import { describeProxied, startProxied } from '../proxied.ts';
import { createTool, ended, writeSource, type Tool } from '../../support/tools/migrate.ts';
import { faultsIn, valuesOf } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let tool: Tool;
let proxied: Awaited<ReturnType<typeof startProxied>> | undefined;

beforeEach(() => {
  tool = createTool();
});

afterEach(async () => {
  await proxied?.close();
  proxied = undefined;
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
const contents = async () => await valuesOf(store, `${tool.prefix}{`);

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

/** Starts an apply, and keeps from Redis the call that has this text for the nth time, with all that is sent after it. */
async function applyHeldAt(text: string | RegExp, nth: number, source: string, ...args: string[]) {
  let [seen, arrive, letGo] = [0, () => {}, () => {}];
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const free = new Promise<void>((resolve) => (letGo = resolve));
  proxied = await startProxied(tool, async (_, words) => {
    // A script that Redis does not know yet is sent twice.
    const call = words.join('\n');
    const isSought = typeof text === 'string' ? call.includes(text) : text.test(call);
    if (words[0] !== 'eval' && isSought && (seen += 1) === nth) {
      arrive();
      await free;
    }
    return 'forward' as const;
  });
  const end = proxied.tool.json('apply', '--source', source, '--run', 'r', ...args);
  await Promise.race([arrived, end]);
  expect(seen).toBe(nth);
  await store.del(`${tool.prefix}migration:lock:r`);
  return {
    goOn: async () => {
      letGo();
      const { exitCode: code, err } = await end;
      return { code, err };
    },
  };
}

/**
 * The process that was paused has ended because of it, or because it read on and found another file, and Redis holds
 * what the source has.
 */
async function expectWhole(source: string, paused: { code: number | null; err: string }): Promise<void> {
  expect(paused).toMatchObject({
    code: 1,
    err: expect.stringMatching(/another process has taken over run r|has changed since it was opened/),
  });
  expect(await tool.json('verify', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
  expect(await faultsIn(store, tool.prefix)).toEqual([]);
  expect(Object.keys(await contents()).filter((key) => key.endsWith(':loading'))).toEqual([]);
}

/** Starts an apply, and stops it while it loads. */
async function stoppedApply(source: string, signal: NodeJS.Signals, isLoading: () => Promise<boolean>) {
  const child = tool.start('apply', '--source', source, '--run', 'r', '--batch', '20', '--rate', '400');
  const end = ended(child);
  while (!(await isLoading())) await sleep(2);
  child.kill(signal);
  await end;
}

/** Kills an apply while it loads the profiles called old; returns its source. */
async function killedApply(): Promise<string> {
  const source = writeSource({ profiles: profiles(2000, 'old') });
  const isSaved = async () => (await readRun({ store, prefix: tool.prefix }, 'r'))?.loaded !== undefined;
  await stoppedApply(source, 'SIGKILL', async () => (await exists('acme', 'old-100')) && (await isSaved()));
  return source;
}

const apply = async (source: string) =>
  expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });

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
    await apply(source);
    const before = await contents();
    const paused = await goOn();
    expect(await contents()).toEqual(before);
    await expectWhole(source, paused);
  });

  test('writes nothing into an organization that exists', async () => {
    const withPicture = (picture: string): object[] =>
      profiles(600, 'user').map((each) => ({ ...each, profilePictureUrl: `https://x.example/${picture}` }));
    const source = writeSource({ profiles: withPicture('first') });
    await apply(source);
    const pictureOf = async (user: string) => await store.hget(`${tool.prefix}{acme}:p:${user}`, 'pu');
    writeSource({ profiles: withPicture('second') }, source);
    const isWriting = async () => (await pictureOf('user-100')) === 'https://x.example/second';
    const { goOn } = await pausedApply(source, isWriting, '--rate', '200');
    writeSource({ profiles: withPicture('third') }, source);
    await apply(source);
    await expectWhole(source, await goOn());
  });

  test('gives no user a name that the source had before', async () => {
    const count = 2000;
    const own = profiles(count, 'user');
    const swapped = own.map((each, at) => ({ ...each, username: `user-${at ^ 1}` }));
    const source = writeSource({ profiles: own });
    await apply(source);
    writeSource({ profiles: swapped }, source);
    let recorded = 0;
    const isRenaming = async () => {
      const before = recorded;
      recorded = await store.hlen(`${tool.prefix}{acme}:renames`);
      return recorded < before;
    };
    const { goOn } = await pausedApply(source, isRenaming);
    writeSource({ profiles: own }, source);
    await apply(source);
    await expectWhole(source, await goOn());
  });
});

describeProxied(
  'a call that an apply made before another one took over, and that Redis gets only then',
  () => {
    const own = profiles(20, 'user');
    const named = (names: (at: number) => number): object[] =>
      own.map((each, at) => ({ ...each, username: `user-${names(at)}` }));
    const object = (url: string): object => ({
      organizationId: 'acme',
      datasourceId: 'd',
      objectDefinitionId: 'o',
      url,
    });
    const denied = (username: string): object => ({ organizationId: 'acme', username });
    const picture = (url: string): object[] => own.map((each) => ({ ...each, profilePictureUrl: url }));
    const [first, second, third] = ['https://x.example/1', 'https://x.example/2', 'https://x.example/3'];

    // The first call with a text only asks what would be done, or records it.
    test.each<[string, Record<string, object[]>, Record<string, object[]>, string, number]>([
      ['writes profiles', { profiles: picture(second) }, { profiles: picture(third) }, second, 2],
      ['writes the catalogue', { objects: [object(second)] }, { objects: [object(third)] }, second, 2],
      [
        'writes the denylist',
        { denylist: [denied('Admin'), denied('Root')] },
        { denylist: [denied('Admin'), denied('root')] },
        '"Root"',
        2,
      ],
      ['prunes', { profiles: own.slice(1) }, { profiles: own }, '["user-0","user-0","user-0"]', 2],
      [
        'records renames',
        { profiles: named((at) => at ^ 1) },
        { profiles: named((at) => at) },
        '["user-0","user-0","user-0","user-1","user-1"]',
        1,
      ],
      [
        'renames',
        { profiles: named((at) => at ^ 1) },
        { profiles: named((at) => at) },
        '["user-0","user-0","user-0","user-1","user-1"]',
        2,
      ],
    ])('changes nothing where it %s', async (_, stale, fresh, text, nth) => {
      const source = writeSource({
        profiles: picture(first).map((each, at) => ({ ...each, ...own[at] })),
        objects: [object(first)],
        denylist: [denied('Admin')],
      });
      await apply(source);
      writeSource(stale, source);
      const { goOn } = await applyHeldAt(text, nth, source, '--prune', '--prune-at-most', '1');
      writeSource(fresh, source);
      await apply(source);
      const before = await contents();
      const paused = await goOn();
      expect(await contents()).toEqual(before);
      await expectWhole(source, paused);
    });

    test('changes nothing where it rolls back what the other one has loaded since', async () => {
      const source = await killedApply();
      writeSource({ profiles: own }, source);
      const { goOn } = await applyHeldAt(':p:old-1', 1, source);
      await apply(source);
      const before = await contents();
      const paused = await goOn();
      expect(await contents()).toEqual(before);
      await expectWhole(source, paused);
    });

    test('takes nothing over where the other one was stopped, and goes on later', async () => {
      const source = await killedApply();
      writeSource({ profiles: profiles(2000, 'new') }, source);
      const { goOn } = await applyHeldAt(/\nload$/, 1, source);
      await stoppedApply(source, 'SIGINT', () => exists('acme', 'new-100'));
      const paused = await goOn();
      await apply(source);
      await expectWhole(source, paused);
    });

    test('makes no later one leave out rows that were rolled back', async () => {
      const source = writeSource({ profiles: [...profiles(2000, 'user'), { organizationId: 'acme' }] });
      const skipping = ['--batch', '20', '--rate', '400', '--on-conflict', 'skip'];
      const { goOn } = await applyHeldAt(/rows\W+\d/, 1, source, ...skipping);
      expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 1 });
      await goOn();
      const call = ['--source', source, '--run', 'r'];
      expect(await tool.json('apply', ...call, '--on-conflict', 'skip')).toMatchObject({ exitCode: 0 });
      expect(await tool.json('verify', ...call)).toMatchObject({ exitCode: 0 });
    });

    test('leaves no organization being loaded that no later one finds', async () => {
      const source = writeSource({ profiles: [...profiles(10, 'user'), { organizationId: 'acme' }] });
      const { goOn } = await applyHeldAt(/\nload$/, 1, source);
      expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 1 });
      expect(await goOn()).toMatchObject({
        code: 1,
        err: expect.stringContaining('another process has taken over'),
      });
      writeSource({ profiles: profiles(10, 'user', () => 'blue') }, source);
      await apply(source);
      expect(Object.keys(await contents()).filter((key) => key.includes('{acme}'))).toEqual([]);
    });
  },
);

describeProxied('the state of a run stays as the apply that has taken it over leaves it', () => {
  const state = async () => await store.hgetall(`${tool.prefix}migration:run:r`);
  const broken = { organizationId: 'acme' };
  const skipping = ['--batch', '20', '--rate', '400', '--on-conflict', 'skip'];

  /** Holds a call of an apply until the next one has ended, and expects that it does not change the state. */
  async function expectKept(held: RegExp, nth: number, source: string, args: string[], next: object[]) {
    const { goOn } = await applyHeldAt(held, nth, source, ...args);
    writeSource({ profiles: next }, source);
    await apply(source);
    const before = await state();
    expect(before['state']).toContain('finishedAt');
    const paused = await goOn();
    expect(await state()).toEqual(before);
    await expectWhole(source, paused);
  }

  test.each<[string, RegExp, number]>([
    ['begins', /startedAt/, 2],
    ['saves how far it has loaded', /rows\W+\d/, 1],
    ['saves how far it has written', /profiles\W+read/, 1],
    ['finishes', /finishedAt\W+\d/, 1],
  ])('where an earlier one %s late', async (_, call, nth) => {
    const source = writeSource({ profiles: profiles(400, 'user') });
    await expectKept(call, nth, source, skipping, profiles(420, 'user'));
  });

  test('where an earlier one was refused, and forgets itself late', async () => {
    const source = writeSource({ profiles: [...profiles(20, 'user'), broken] });
    await expectKept(/^forget$/m, 1, source, [], profiles(20, 'new'));
  });

  test('and its name on the list of runs, where an earlier one that was refused takes it off late', async () => {
    const source = writeSource({ profiles: [...profiles(20, 'user'), broken] });
    const { goOn } = await applyHeldAt(/^srem\n.*:runs\n/, 1, source);
    writeSource({ profiles: profiles(20, 'new') }, source);
    await apply(source);
    await goOn();
    expect(await runNames({ store, prefix: tool.prefix })).toEqual(['r']);
  });

  test('where an earlier one rolls back late what was loaded', async () => {
    const source = await killedApply();
    writeSource({ profiles: profiles(2000, 'new') }, source);
    const { goOn } = await applyHeldAt(/^save$/m, 1, source);
    await stoppedApply(source, 'SIGINT', () => exists('acme', 'new-100'));
    const before = await state();
    expect(before['state']).toContain('loaded');
    const paused = await goOn();
    expect(await state()).toEqual(before);
    await apply(source);
    await expectWhole(source, paused);
  });
});

test('an apply may write where the clock was ahead in an earlier one, and so may forget', async () => {
  const ahead = Date.now() + 3_600_000;
  const source = await killedApply();
  await store.set(`${tool.prefix}migration:token`, ahead);
  await store.hset(`${tool.prefix}{acme}:claims`, 'r', `r\n0\n${ahead}`);
  expect(await tool.json('forget', '--run', 'r', '--yes')).toMatchObject({ exitCode: 0 });
  await apply(source);
});
