import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { runTool } from '../../../support/tools/admin.ts';
import { listOrganizations } from '../../../../src/redis/organizations.ts';
import { applyRun } from '../../../../src/migration/engine/apply.ts';
import { closeRedis } from '../../../../src/redis/connection/connect.ts';
import { readRun, runKey } from '../../../../src/migration/runs/runs.ts';
import { openTestStore } from '../../../support/bridge.ts';
import { withChosen } from '../../test-context.ts';
import { startProxied, testProxied } from '../../proxied.ts';
import { startRedis } from '../../../support/redis.ts';
import { createTool, ended, newFolder, writeSource, type Tool } from '../../../support/tools/migrate.ts';
import { gapsKey, unmappedKeysKey } from '../../../../src/redis/keys.ts';
import { faultsIn, keysOf } from '../../../support/store.ts';
import { until } from '../../../support/until.ts';
import { useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();

function profiles(count: number): { organizationId: string; userId: string; username: string }[] {
  return Array.from({ length: count }, (_, at) => ({
    organizationId: at % 2 === 0 ? 'acme' : 'other',
    userId: `user-${at}`,
    username: `name-${at}`,
  }));
}

const keyOf = { organizationId: 'acme', apiKey: 'secret', role: 'admin' };

/** Kills an apply when it has loaded some profiles, and saved how many; none of their organizations exists then. */
async function killedWhileLoading(tool: Tool, source: string, rows = 1, rate = 1000): Promise<void> {
  const args = ['--source', source, '--batch', '20', '--rate', String(rate), '--run', 'r'];
  const child = tool.start('apply', ...args);
  const end = ended(child);
  await until(async () => {
    const loaded = (await readRun({ store, prefix: tool.prefix }, 'r'))?.loaded;
    return loaded !== undefined && loaded.rows >= rows;
  });
  child.kill('SIGKILL');
  await end;
  expect(await store.exists(`${tool.prefix}{acme}:settings`)).toBe(0);
  const keys = await keysOf(store, tool.prefix);
  expect(keys.filter((key) => key.includes(':key:'))).toEqual([]);
}

describe('an organization that Redis does not know', () => {
  test('is rolled back completely if a record has a problem, and only the report is left', async () => {
    const tool = createTool();
    const source = writeSource({
      organizations: [{ organizationId: 'acme' }],
      objects: [
        { organizationId: 'acme', datasourceId: 'd', objectDefinitionId: 'o', url: 'https://x.example' },
      ],
      'api-keys': [keyOf],
      profiles: [...profiles(50), { organizationId: 'acme', userId: 'late', username: 'name-0' }],
    });
    expect(await tool.json('apply', '--source', source)).toMatchObject({
      exitCode: 1,
      json: { state: 'refused', written: 0, conflicts: 1 },
    });
    // The next run's claims must be higher than all before.
    expect(await keysOf(store, tool.prefix)).toEqual([`${tool.prefix}migration:token`]);
    expect((await tool.text('status')).out).toBe('No migration has been started yet.\n');
    expect(await tool.json('apply', '--source', source, '--on-conflict', 'skip')).toMatchObject({
      exitCode: 0,
      json: { refused: 1 },
    });
  });

  test('is rolled back without what the cut-over has on record of it', async () => {
    const tool = createTool();
    const base = `${tool.prefix}{acme}:`;
    const gap = JSON.stringify({ count: 1, first: 1, last: 1 });
    await store.hset(gapsKey(base), 'unknown-key', gap);
    await store.hset(unmappedKeysKey(base), 'sha256', '{}');
    const source = writeSource({ profiles: [...profiles(3), { organizationId: 'acme', userId: '' }] });
    expect(await tool.json('apply', '--source', source)).toMatchObject({ exitCode: 1 });
    expect((await keysOf(store, base)).sort()).toEqual([gapsKey(base), unmappedKeysKey(base)].sort());
    expect(await store.hgetall(gapsKey(base))).toEqual({ 'unknown-key': gap });
  });

  test('is not loaded if it was in use and has lost its settings: what it has stays as it is', async () => {
    const tool = createTool();
    const source = writeSource({ 'api-keys': [keyOf], profiles: profiles(4) });
    expect(await tool.json('apply', '--source', source)).toMatchObject({ exitCode: 0 });
    await store.del(`${tool.prefix}{acme}:settings`);
    const before = await keysOf(store, `${tool.prefix}{acme}:`);
    const rivals = writeSource({
      profiles: ['x', 'y'].map((userId) => ({ organizationId: 'acme', userId, username: 'same' })),
    });
    for (const from of [source, rivals]) {
      expect(await tool.json('apply', '--source', from, '--fresh')).toMatchObject({
        exitCode: 1,
        err: expect.stringContaining('organization "acme" has data and no settings'),
      });
      expect(await keysOf(store, `${tool.prefix}{acme}:`)).toEqual(before);
    }
  });

  test('is rolled back completely if the source cannot be read to its end', async () => {
    const tool = createTool();
    const source = newFolder();
    const whole = gzipSync(
      profiles(5000)
        .map((record) => `${JSON.stringify(record)}\n`)
        .join(''),
    );
    writeFileSync(join(source, 'profiles.ndjson.gz'), whole.subarray(0, -1000));
    expect(await tool.json('apply', '--source', source)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('is not a whole gzip file'),
    });
    expect(await keysOf(store, tool.prefix)).toEqual([`${tool.prefix}migration:token`]);
  });

  test('is counted the same by apply and status, invalid and refused rows included', async () => {
    const tool = createTool();
    const rival = { organizationId: 'acme', userId: 'late', username: 'name-0' };
    const source = writeSource({ profiles: [...profiles(20), rival, { organizationId: 'acme' }] });
    const args = ['--source', source, '--run', 'r', '--on-conflict', 'skip'];
    const applied = await tool.json('apply', ...args);
    expect(applied.json).toMatchObject({ read: 22, created: 20, invalid: 1, refused: 2 });
    expect((await tool.json('status', '--run', 'r')).json).toMatchObject({
      entities: { profiles: { read: 22, tally: { created: 20, invalid: 1, refused: 1 } } },
    });
    const { out } = await tool.text('status');
    expect(out).toMatch(/ refused\nprofiles +100 % +22 +20 +0 +0 +0 +2$/m);
  });

  test('has settings that are read first and written last: until then they are not shown as done', async () => {
    const tool = createTool();
    const source = writeSource({ organizations: [{ organizationId: 'acme' }], profiles: profiles(1000) });
    await killedWhileLoading(tool, source);
    expect((await tool.json('status', '--run', 'r')).json).toMatchObject({
      entities: { organizations: { read: 0, progress: 0, isDone: false } },
    });
    expect((await tool.text('status')).out).toMatch(/^organizations +0 % +0 /m);
  });

  test('comes into being after its profiles and before its API keys, and a killed load is resumed', async () => {
    const tool = createTool();
    const source = writeSource({ 'api-keys': [keyOf], profiles: profiles(1000) });
    await killedWhileLoading(tool, source);
    expect((await tool.json('status', '--run', 'r')).json).toMatchObject({ phase: 'interrupted' });
    // With another batch size it resumes all the same.
    const again = await tool.json('apply', '--source', source, '--run', 'r', '--batch', '33');
    expect(again).toMatchObject({ exitCode: 0, json: { resumed: true, created: 1001 } });
    expect(await tool.json('verify', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
    expect(await faultsIn(store, tool.prefix)).toEqual([]);
    expect((await keysOf(store, tool.prefix)).filter((key) => key.includes('loading'))).toEqual([]);
  });

  test('finds repeated records by the same seed when it is resumed, or some would count as loaded that were not', async () => {
    const tool = createTool();
    const source = writeSource({ profiles: profiles(1000) });
    const loaded = async () => (await readRun({ store, prefix: tool.prefix }, 'r'))?.loaded;
    await killedWhileLoading(tool, source);
    const first = await loaded();
    await killedWhileLoading(tool, source, 500);
    expect(await loaded()).toMatchObject({ seed: first?.seed, servers: first?.servers });
  });

  test('is loaded from the start if a version that sets other records aside has begun it', async () => {
    const tool = createTool();
    const ends = [0, 998];
    const denylist = ends.map((at) => ({ organizationId: 'acme', username: `name-${at}` }));
    const source = writeSource({ denylist, profiles: profiles(1000) });
    await killedWhileLoading(tool, source, 50);
    const key = runKey(tool.prefix, 'r');
    const state = (await store.hget(key, 'state')) ?? '';
    // The version before this one has stored that of the source alone, and has written denied usernames, also after that.
    await store.hset(key, 'state', state.replace(/"version":"\d+\\n/, '"version":"'));
    for (const at of ends) await store.hset(`${tool.prefix}{acme}:p:user-${at}`, { u: `name-${at}`, t: '' });
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({
      exitCode: 0,
      json: { resumed: true, created: 1002, updated: 0 },
    });
    expect(await faultsIn(store, tool.prefix)).toEqual([]);
  });

  test('is refused and loaded from the start if Redis fails over meanwhile and may have lost some of it', async () => {
    const redis = await startRedis();
    const client = await openTestStore(redis.url);
    try {
      const tool = createTool(redis.url);
      const source = writeSource({ profiles: profiles(1000) });
      const args = ['--source', source, '--run', 'r'];
      const child = tool.start('apply', ...args, '--batch', '20', '--rate', '1000');
      const end = ended(child);
      const first = `${tool.prefix}{acme}:p:user-0`;
      await until(async () => (await client.exists(first)) === 1);
      // The ID of a master that has just been promoted.
      await client.multi().replicaof('127.0.0.1', 1).replicaof('NO', 'ONE').del(first).exec();
      expect(await end).toMatchObject({
        code: 1,
        err: expect.stringContaining('lost in a failover of Redis: run the same command again'),
      });
      expect(await tool.json('apply', ...args)).toMatchObject({ exitCode: 0, json: { created: 1000 } });
      expect(await client.exists(first)).toBe(1);
      expect(await tool.json('verify', ...args)).toMatchObject({ exitCode: 0 });
    } finally {
      await closeRedis(client);
      await redis.stop();
    }
  });

  test('is resumed at once, though not faster than --rate, if most of it was loaded slowly', async () => {
    const tool = createTool();
    const source = writeSource({ profiles: profiles(1000) });
    await killedWhileLoading(tool, source, 800, 300);
    // For all rows it would take 25 seconds, and for the rest 5.
    const again = await tool.json('apply', '--source', source, '--run', 'r', '--rate', '40');
    expect(again).toMatchObject({ exitCode: 0, json: { resumed: true, created: 1000 } });
    expect(again.json['seconds']).toBeLessThan(15);
  });

  test('is loaded from the start if the source has changed since the load was killed', async () => {
    const tool = createTool();
    const source = writeSource({ organizations: [{ organizationId: 'acme' }], profiles: profiles(1000) });
    await killedWhileLoading(tool, source);
    appendFileSync(join(source, 'organizations.ndjson'), '{"organizationId":"third"}\n');
    writeSource({ profiles: profiles(1000).slice(150) }, source);
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
    expect(await tool.json('verify', '--source', source, '--run', 'r')).toMatchObject({
      exitCode: 0,
      json: { stored: { profiles: 850 } },
    });
    expect((await tool.contents())['organizations.ndjson']).toContain('"third"');
  });

  testProxied('is loaded from the start if the source was another one in between', async () => {
    const tool = createTool();
    const source = writeSource({ profiles: profiles(1000) });
    await killedWhileLoading(tool, source);
    const file = join(source, 'profiles.ndjson');
    renameSync(file, `${file}.first`);
    writeSource({ profiles: profiles(1000).slice(500) }, source);
    const proxied = await startProxied(tool, (_, words) =>
      words.join().includes('user-500') ? 'kill' : 'forward',
    );
    const cutOff = await proxied.tool.json('apply', '--source', source, '--run', 'r');
    expect(cutOff).toMatchObject({ exitCode: 1, err: expect.stringContaining('Redis was lost') });
    await proxied.close();
    await store.del(`${tool.prefix}migration:lock:r`);
    renameSync(`${file}.first`, file);
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
    expect((await tool.json('verify', '--source', source, '--run', 'r')).json).toMatchObject({ missing: 0 });
  });

  test('is loaded from the start after a killed load was rolled back, even if the source is the same', async () => {
    const tool = createTool();
    const taken = { organizationId: 'third', userId: 'local', username: 'wanted' };
    await tool.json('apply', '--source', writeSource({ profiles: [taken] }), '--run', 'first');
    const source = writeSource({ profiles: [...profiles(1000), { ...taken, userId: 'x' }] });
    await killedWhileLoading(tool, source);
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({
      exitCode: 1,
      json: { state: 'refused' },
    });
    const settled = writeSource({ profiles: [{ ...taken, username: 'another' }] });
    await tool.json('apply', '--source', settled, '--run', 'first', '--fresh');
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
    expect(await faultsIn(store, tool.prefix)).toEqual([]);
    expect((await tool.json('verify', '--source', source, '--run', 'r')).json).toMatchObject({ missing: 0 });
  });

  testProxied('is loaded from the start if the load was killed when it had set records aside', async () => {
    const tool = createTool();
    const rivals = [0, 1].map((at) => ({
      organizationId: 'acme',
      userId: `rival-${at}`,
      username: `name-${at}`,
    }));
    const source = writeSource({ profiles: [...profiles(400), ...rivals] });
    const args = ['apply', '--source', source, '--run', 'r', '--on-conflict', 'skip'];
    let wasSaved = false;
    const proxied = await startProxied(tool, async (_, words) => {
      wasSaved ||= (await readRun({ store, prefix: tool.prefix }, 'r'))?.loaded !== undefined;
      return words.includes('exact') ? 'kill' : 'forward';
    });
    const slowly = ['--batch', '20', '--rate', '800'];
    const cutOff = await proxied.tool.json(...args, ...slowly);
    expect(cutOff).toMatchObject({ exitCode: 1, err: expect.stringContaining('Redis was lost') });
    expect(wasSaved).toBe(true);
    await proxied.close();
    await store.del(`${tool.prefix}migration:lock:r`);
    expect(await tool.json(...args)).toMatchObject({ exitCode: 0, json: { refused: 1 } });
    expect(await tool.json('verify', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
  });

  testProxied(
    'stays registered when a load that was killed at its end is forgotten, and is not shown',
    async () => {
      const tool = createTool();
      const call = ['--source', writeSource({ profiles: profiles(10) }), '--run', 'r'];
      // Its settings are written by the last call of a load.
      const proxied = await startProxied(tool, (_, words) => (words.includes('exact') ? 'kill' : 'forward'));
      const cutOff = await proxied.tool.json('apply', ...call);
      expect(cutOff).toMatchObject({ exitCode: 1, err: expect.stringContaining('Redis was lost') });
      await proxied.close();
      await store.del(`${tool.prefix}migration:lock:r`);
      expect(await tool.text('forget', '--run', 'r', '--yes')).toMatchObject({
        exitCode: 0,
        out: expect.stringMatching(
          / Its unfinished load of \d organizations? was rolled back: (acme|other|acme, other)\.\n$/,
        ),
      });
      // A process that was paused must not take an organization that is in use off this list.
      expect(await listOrganizations(store, tool.prefix)).toHaveLength(1);
      expect(await runTool(tool.env, 'org list')).toMatchObject({
        out: expect.stringContaining('No organization'),
      });
      const faults = await faultsIn(store, tool.prefix);
      expect(faults.map(({ kind }) => kind)).toEqual(['settings-missing']);
      expect(await tool.json('apply', ...call)).toMatchObject({ exitCode: 0 });
      expect(await faultsIn(store, tool.prefix)).toEqual([]);
    },
  );

  test('is reported with its usernames as given, also where they are compared without case', async () => {
    const tool = createTool();
    const report = join(newFolder(), 'report.ndjson');
    const source = writeSource({
      organizations: [{ organizationId: 'acme', usernameComparison: 'case-insensitive' }],
      denylist: [{ organizationId: 'acme', username: 'ROOT' }],
      profiles: ['Root', 'Ann', 'ANN'].map((username) => ({
        organizationId: 'acme',
        userId: `user-${username}`,
        username,
      })),
    });
    await tool.json('apply', '--source', source, '--report', report, '--on-conflict', 'skip');
    const lines = readFileSync(report, 'utf8').trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { reason: 'username-conflict', username: 'ANN', detail: expect.stringContaining('"ANN"') },
      { reason: 'denied-name-in-use', username: 'Root', detail: expect.stringContaining('"Root"') },
    ]);
  });

  test('cannot be created by the operator or loaded by another run meanwhile', async () => {
    const tool = createTool();
    const source = writeSource({ profiles: profiles(1000) });
    await killedWhileLoading(tool, source);
    expect(await runTool(tool.env, 'org set acme')).toMatchObject({
      code: 1,
      err: expect.stringContaining('is being loaded'),
    });
    expect(await tool.json('apply', '--source', source, '--run', 'second')).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('is being loaded by run r'),
    });
    expect(await tool.json('apply', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
  });

  test('is loaded with the same result as an existing one, whatever the records', async () => {
    const id = fc.constantFrom('a', 'b', 'c', 'd');
    const profile = fc.record(
      {
        organizationId: fc.constantFrom('acme', 'other'),
        userId: id,
        username: fc.constantFrom('x', 'y', 'z', 'Z', 'ß'),
        profilePictureUrl: fc.constantFrom('https://x.example/1', 'https://x.example/2'),
        updatedAt: fc.nat(3),
      },
      { requiredKeys: ['organizationId', 'userId'] },
    );
    const denied = fc.record({ organizationId: fc.constantFrom('acme', 'other'), username: id });
    await fc.assert(
      fc.asyncProperty(
        fc.array(profile, { maxLength: 12 }),
        fc.array(denied, { maxLength: 4 }),
        fc.constantFrom('skip', 'drop-username'),
        async (records, denylist, onConflict) => {
          const organizations = [
            { organizationId: 'acme', usernameComparison: 'case-insensitive' },
            { organizationId: 'other' },
          ];
          const source = writeSource({ organizations, denylist, profiles: records });
          const [fresh, existing] = [createTool(), createTool()];
          await existing.json('apply', '--source', writeSource({ organizations }), '--run', 'first');
          for (const tool of [fresh, existing]) {
            const args = ['--source', source, '--run', 'r', '--on-conflict', onConflict];
            expect(await tool.json('apply', ...args)).toMatchObject({ exitCode: 0 });
            expect(await faultsIn(store, tool.prefix)).toEqual([]);
          }
          expect(await fresh.contents()).toEqual(await existing.contents());
        },
      ),
      {
        numRuns: 15,
        endOnFailure: true,
        // The first record is superseded by the third, so the second is the first that wants the name.
        examples: [
          [
            [
              { organizationId: 'other', userId: 'a', username: 'x', updatedAt: 1 },
              { organizationId: 'other', userId: 'b', username: 'x', updatedAt: 1 },
              { organizationId: 'other', userId: 'a', username: 'x', updatedAt: 2 },
            ],
            [],
            'skip',
          ],
        ],
      },
    );
  });
});

test('a resumed apply does not miss rows added to a file after it was read', async () => {
  const tool = createTool();
  const source = writeSource({
    organizations: [{ organizationId: 'acme' }, { organizationId: 'other' }],
    denylist: [{ organizationId: 'acme', username: 'root' }],
    profiles: [],
  });
  const args = ['apply', '--source', source, '--run', 'r'];
  await tool.json(...args);
  writeSource({ profiles: profiles(600) }, source);
  const child = tool.start(...args, '--batch', '10', '--rate', '300', '--fresh');
  const end = ended(child);
  await until(() => store.exists(`${tool.prefix}{acme}:p:user-0`));
  child.kill('SIGKILL');
  await end;
  appendFileSync(join(source, 'denylist.ndjson'), '{"organizationId":"acme","username":"new"}\n');
  writeFileSync(join(source, 'collections.ndjson'), '');
  expect(await tool.json(...args)).toMatchObject({ exitCode: 0, json: { resumed: false } });
  expect(await tool.json('verify', '--source', source, '--run', 'r')).toMatchObject({ exitCode: 0 });
});

/** A connection that takes its time with objects whose URL is this one; how many calls with them are in progress. */
async function openSlowStore(url: string) {
  const slow = await openTestStore();
  const evalsha = slow.evalsha.bind(slow) as (...call: unknown[]) => Promise<unknown>;
  let underWay = 0;
  slow.evalsha = async (...call: unknown[]) => {
    if (!call.join().includes(url)) return await evalsha(...call);
    underWay += 1;
    await sleep(200);
    return await evalsha(...call).finally(() => (underWay -= 1));
  };
  return { slow, underWay: () => underWay };
}

describe('an apply releases its run only once nothing is in progress', () => {
  const objectIn = (organizationId: string, at: number, url: string): object => {
    return { organizationId, datasourceId: 'd', objectDefinitionId: `o${at}`, url };
  };
  const slowUrl = 'https://slow.example';
  const slowObjects = Array.from({ length: 50 }, (_, at) => objectIn('acme', at, slowUrl));

  test('when it is stopped', async () => {
    const source = writeSource({ objects: slowObjects });
    const { slow, underWay } = await openSlowStore(slowUrl);
    const stop = new AbortController();
    let chunks = 0;
    const advance = (): void => {
      // The third is about to be written.
      if (++chunks === 3) stop.abort();
    };
    const choice = { store: slow, advance, signal: stop.signal };
    await withChosen(createTool(), source, choice, async (chosen, context) => {
      expect(await applyRun(chosen, context, {})).toMatchObject({ kind: 'interrupted' });
      expect(underWay()).toBe(0);
    });
  });

  test.each<[string, object[]]>([
    ['the first load', []],
    ['an organization that exists', [{ organizationId: 'acme' }, { organizationId: 'bad' }]],
  ])('when a chunk fails in %s', async (_, organizations) => {
    const tool = createTool();
    await tool.json('apply', '--source', writeSource({ organizations }));
    await store.set(`${tool.prefix}{bad}:objects`, 'no hash');
    const bad = Array.from({ length: 10 }, (__, at) => objectIn('bad', at, 'https://fast.example'));
    const source = writeSource({ organizations, objects: [...bad, ...slowObjects] });
    const { slow, underWay } = await openSlowStore(slowUrl);
    await withChosen(tool, source, { store: slow }, async (chosen, context) => {
      await expect(applyRun(chosen, context, {})).rejects.toThrow('WRONGTYPE');
      expect(underWay()).toBe(0);
    });
  });
});
