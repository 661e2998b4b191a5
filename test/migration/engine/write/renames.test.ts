import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  completeRenames,
  countPendingRenames,
  makeRenames,
} from '../../../../src/migration/engine/write/renames.ts';
import { startBridge } from '../../../support/bridge.ts';
import { freshPrefix } from '../../../support/redis.ts';
import { createTestContext } from '../../test-context.ts';
import { startProxied, testProxied } from '../../proxied.ts';
import { createTool, ended, writeSource } from '../../../support/tools/migrate.ts';
import { faultsIn } from '../../../support/store.ts';
import { until } from '../../../support/until.ts';
import { useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();

const claim = 'another\n0\n1';

/** Claims the organization, as an apply of another run does. */
async function claimFor(prefix: string): Promise<void> {
  await store.hset(`${prefix}{acme}:claims`, 'another', claim);
}

/** Users u0 to u<count - 1>; the name of each is said by its number. */
function users(count: number, nameOf: (at: number) => number | undefined): object[] {
  return Array.from({ length: count }, (_, at) => {
    const name = nameOf(at);
    return {
      organizationId: 'acme',
      userId: `u${at}`,
      ...(name !== undefined && { username: `name-${name}` }),
    };
  });
}

async function namesOf(prefix: string, count: number): Promise<(string | null)[]> {
  const keys = Array.from({ length: count }, (_, at) => `${prefix}{acme}:p:u${at}`);
  return await Promise.all(keys.map((key) => store.hget(key, 'u')));
}

/** What the renames work with; it is stopped after so many scripts. */
function contextFor(prefix: string, scripts = Infinity) {
  const stop = new AbortController();
  let made = 0;
  const advance = (): void => {
    made += 1;
    if (made >= scripts) stop.abort();
  };
  return createTestContext(store, prefix, { advance, signal: stop.signal, claim });
}

describe('renames that depend on each other', () => {
  test('leave every user with a name, wherever the process is killed', async () => {
    const tool = createTool();
    const count = 300;
    const first = writeSource({ profiles: users(count, (at) => at) });
    expect(await tool.json('apply', '--source', first, '--run', 'r')).toMatchObject({ exitCode: 0 });
    const second = writeSource({ profiles: users(count, (at) => (at + 1) % count) });
    const args = ['apply', '--source', second, '--run', 'second', '--batch', '1', '--rate', '100'];
    const child = tool.start(...args);
    const end = ended(child);
    await until(async () => (await store.hget(`${tool.prefix}{acme}:p:u0`, 'u')) !== 'name-0');
    child.kill('SIGKILL');
    await end;
    expect((await namesOf(tool.prefix, count)).filter((name) => name === null)).toEqual([]);
    expect(await faultsIn(store, tool.prefix)).toEqual([]);
    expect(await tool.json('apply', '--source', second, '--run', 'second')).toMatchObject({ exitCode: 0 });
    expect(await namesOf(tool.prefix, count)).toEqual(
      users(count, (at) => at).map((_, at) => `name-${(at + 1) % count}`),
    );
  });

  test('are recorded before the first is made, and completed by the next apply, whatever its source', async () => {
    const tool = createTool();
    const count = 500;
    const source = writeSource({ profiles: users(count, (at) => at) });
    await tool.json('apply', '--source', source, '--run', 'r');
    const renames = Array.from({ length: count }, (_, at) => ({
      organizationId: 'acme',
      userId: `u${at}`,
      from: `name-${at}`,
      to: `name-${at + 1}`,
    }));
    await claimFor(tool.prefix);
    const stopped = contextFor(tool.prefix, 1);
    expect(await makeRenames(stopped, renames)).toBe(300);
    expect(await countPendingRenames(stopped, 'r')).toBe(300);
    const names = await namesOf(tool.prefix, count);
    expect(new Set(names).size).toBe(count);
    expect(names).not.toContain(null);
    expect((await tool.json('status', '--run', 'r')).json).toMatchObject({ pendingRenames: 300 });
    expect((await tool.text('status', '--run', 'r')).out).toContain('300 renames pending: ');

    // A change of anything but the name does not keep a name that somebody waits for.
    await store.hset(`${tool.prefix}{acme}:p:u5`, 'b', '1');
    expect(await completeRenames(contextFor(tool.prefix), ['acme'])).toEqual({ completed: 300, pending: 0 });
    expect(await namesOf(tool.prefix, count)).toEqual(renames.map(({ to }) => to));
    expect(await countPendingRenames(stopped, 'r')).toBe(0);
  });

  testProxied('are reported as pending by an apply that is interrupted while it completes them', async () => {
    const tool = createTool();
    const count = 10_000;
    const source = writeSource({ profiles: users(count, (at) => at) });
    await tool.json('apply', '--source', source, '--run', 'r');
    const record = Array.from({ length: count }, (_, at) => [
      `u${at}`,
      JSON.stringify([`name-${at}`, `name-${at + 1}`]),
    ]);
    const key = `${tool.prefix}{acme}:renames`;
    await store.hset(key, ...record.flat());
    let interrupt = (): void => {};
    const proxied = await startProxied(tool, (_, words) => {
      if (words.includes('make')) interrupt();
      return 'forward';
    });
    const child = proxied.tool.start('apply', '--source', source, '--run', 'r');
    interrupt = () => {
      // A second signal would end it at once.
      interrupt = () => {};
      child.kill('SIGINT');
    };
    const { code, out, err } = await ended(child).finally(proxied.close);
    const left = await store.hlen(key);
    expect(left).toBeGreaterThan(0);
    expect(code).toBe(130);
    expect(JSON.parse(out)).toMatchObject({ state: 'interrupted', pendingRenames: left });
    expect(err).toContain('renames pending');
  });

  test('are reported as completed by an apply that is refused afterwards', async () => {
    const tool = createTool();
    await tool.json('apply', '--source', writeSource({ profiles: users(2, (at) => at) }), '--run', 'r');
    const pending = ['u0', JSON.stringify(['name-0', 'name-1']), 'u1', JSON.stringify(['name-1', 'name-0'])];
    await store.hset(`${tool.prefix}{acme}:renames`, ...pending);
    const invalid = writeSource({ profiles: [{ organizationId: 'acme' }] });
    expect(await tool.text('apply', '--source', invalid, '--run', 'r', '--fresh')).toMatchObject({
      exitCode: 1,
      out: expect.stringContaining('Only 2 pending renames completed by run r from'),
      err: expect.stringContaining('so nothing else was written'),
    });
    expect(await namesOf(tool.prefix, 2)).toEqual(['name-1', 'name-0']);
  });

  test('are not made by an apply of another run, whose source says otherwise', async () => {
    const tool = createTool();
    await tool.json('apply', '--source', writeSource({ profiles: users(4, (at) => at) }), '--run', 'r');
    const pending = ['u0', JSON.stringify(['name-0', 'name-1']), 'u1', JSON.stringify(['name-1', 'name-0'])];
    await store.hset(`${tool.prefix}{acme}:renames`, ...pending);
    const swapped = [0, 1, 3, 2];
    const args = ['--source', writeSource({ profiles: users(4, (at) => swapped[at]) }), '--run', 'second'];
    expect(await tool.json('apply', ...args)).toMatchObject({ exitCode: 0 });
    expect(await namesOf(tool.prefix, 4)).toEqual(swapped.map((name) => `name-${name}`));
    expect(await tool.json('verify', ...args)).toMatchObject({ exitCode: 0 });
    expect((await tool.json('status', '--run', 'r')).json).toMatchObject({ pendingRenames: 2 });
  });

  test('to one name, recorded by two runs, give it to one user and leave the other the old one', async () => {
    const tool = createTool();
    const source = writeSource({ profiles: users(3, (at) => at) });
    await tool.json('apply', '--source', source, '--run', 'r');
    const pending = { u0: ['name-0', 'other'], u1: ['name-1', 'name-0'], u2: ['name-2', 'name-0'] };
    for (const [user, names] of Object.entries(pending))
      await store.hset(`${tool.prefix}{acme}:renames`, user, JSON.stringify(names));
    await claimFor(tool.prefix);
    expect(await completeRenames(contextFor(tool.prefix), ['acme'])).toEqual({ completed: 3, pending: 0 });
    const [, ...names] = await namesOf(tool.prefix, 3);
    expect([
      ['name-1', 'name-0'],
      ['name-0', 'name-2'],
    ]).toContainEqual(names);
    expect(await faultsIn(store, tool.prefix)).toEqual([]);
  });

  test.each([
    ['chosen another name', { username: 'chosen' }, ['name-1', 'chosen', 'name-0']],
    ['chosen their name again', { username: 'name-1' }, ['name-0', 'name-1', 'name-2']],
  ])('leave out users who have %s through the bridge meanwhile', async (_, json, names) => {
    const bridge = await startBridge({ keyPrefix: freshPrefix() });
    try {
      const tool = createTool(bridge.config.redisUrl, bridge.config.keyPrefix);
      const organization = await bridge.newOrganization({}, 'acme');
      const source = writeSource({ profiles: users(3, (at) => at) });
      await tool.json('apply', '--source', source, '--run', 'r');
      // A cycle that is none any more.
      const pending = { u0: ['name-0', 'name-1'], u1: ['name-1', 'name-2'], u2: ['name-2', 'name-0'] };
      for (const [user, recorded] of Object.entries(pending))
        await store.hset(`${tool.prefix}{acme}:renames`, user, JSON.stringify(recorded));
      const player = await organization.player('u1');
      await player.request('PUT', '/api/profile/', { json });
      await claimFor(tool.prefix);
      const context = contextFor(tool.prefix);
      await completeRenames(context, ['acme']);
      expect(await namesOf(tool.prefix, 3)).toEqual(names);
      expect(await countPendingRenames(context, 'r')).toBe(0);
      expect(await faultsIn(store, tool.prefix)).toEqual([]);
      // The source may have taken the renames back.
      const call = ['--source', source, '--run', 'r'];
      expect(await tool.json('apply', ...call)).toMatchObject({ exitCode: 0 });
      expect(await tool.json('verify', ...call)).toMatchObject({ exitCode: 0 });
    } finally {
      await bridge.close();
    }
  });

  test('leave out users who were changed here since they were compared, or adopted since the snapshot', async () => {
    const tool = createTool();
    await tool.json('apply', '--source', writeSource({ profiles: users(4, (at) => at) }), '--run', 'r');
    const adopt = async (user: string, at: number) =>
      await store.hset(`${tool.prefix}{acme}:p:${user}`, 'as', '1', 'at', at);
    await adopt('u0', 999);
    await adopt('u2', 1000);
    await store.hset(`${tool.prefix}{acme}:p:u3`, 'b', '1');
    const rename = (at: number) => ({
      organizationId: 'acme',
      userId: `u${at}`,
      from: `name-${at}`,
      to: `other-${at}`,
    });
    await claimFor(tool.prefix);
    await makeRenames({ ...contextFor(tool.prefix), snapshotAt: 1000 }, [0, 1, 2, 3].map(rename));
    expect(await namesOf(tool.prefix, 4)).toEqual(['other-0', 'other-1', 'name-2', 'name-3']);
    expect(await faultsIn(store, tool.prefix)).toEqual([]);
  });

  test('give every user the name in the source, for any permutation', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.option(fc.nat(11), { nil: undefined }), { minLength: 1, maxLength: 8 }),
        async (wanted) => {
          const tool = createTool();
          const count = wanted.length;
          await tool.json(
            'apply',
            '--source',
            writeSource({ profiles: users(count, (at) => at) }),
            '--run',
            'r',
          );
          const taken = new Set<number>();
          const names = wanted.map((name) => {
            if (name === undefined || taken.has(name)) return undefined;
            taken.add(name);
            return name;
          });
          const second = writeSource({ profiles: users(count, (at) => names[at]) });
          const args = ['--source', second, '--run', 'second'];
          expect(await tool.json('apply', ...args)).toMatchObject({ exitCode: 0, json: { conflicts: 0 } });
          expect(await namesOf(tool.prefix, count)).toEqual(
            names.map((name) => (name === undefined ? null : `name-${name}`)),
          );
          expect(await tool.json('verify', ...args)).toMatchObject({ exitCode: 0 });
        },
      ),
      { numRuns: 8, endOnFailure: true },
    );
  });
});
