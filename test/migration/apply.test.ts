import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { whileLocked } from '../../src/migration/runs/lock.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { scanKeys } from '../../src/redis/connection/scan.ts';
import { runTool } from '../support/tools/admin.ts';
import { openTestStore, startBridge, type TestBridge } from '../support/bridge.ts';
import { createClient } from '../support/requests/client.ts';
import { freshPrefix, startRedis, unusedPort } from '../support/redis.ts';
import { createTestContext } from './test-context.ts';
import { createTool, ended, newFolder, writeSource, type Tool } from '../support/tools/migrate.ts';
import { faultsIn } from '../support/store.ts';
import { until } from '../support/until.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();

const T = 1_700_000_000_000;
const many = 3000;

/** Profiles that refer to each other's names in no way. */
function profiles(count: number, from = 0): object[] {
  return Array.from({ length: count }, (_, at) => ({
    organizationId: at % 3 === 0 ? 'acme' : 'other',
    userId: `user-${from + at}`,
    username: `name-${from + at}`,
    profilePictureUrl: `https://cdn.example.com/${from + at}.png`,
    updatedAt: T + at,
  }));
}

/**
 * Every key and value of a prefix, except for the state of the run. How the name index has grown into buckets depends
 * on the order of the names; each is checked to be in the right one.
 */
async function keysOf(prefix: string): Promise<Record<string, unknown>> {
  expect(await faultsIn(store, prefix)).toEqual([]);
  const all: Record<string, unknown> = {};
  const names: Record<string, object> = {};
  for await (const keys of scanKeys(store, prefix)) {
    for (const key of keys) {
      if (key.includes('migration:') || key.endsWith('}:claims')) continue;
      const type = await store.type(key);
      const name = key.slice(prefix.length);
      const [, index] = /^(.*:n\d+):\d+$/.exec(name) ?? [];
      if (index !== undefined) names[index] = { ...names[index], ...(await store.hgetall(key)) };
      else if (name.endsWith(':settings')) all[name] = await settingsIn(key);
      else if (type === 'hash') all[name] = await store.hgetall(key);
      else if (type === 'set') all[name] = (await store.smembers(key)).sort();
      else all[name] = type;
    }
  }
  return { ...all, ...names };
}

async function settingsIn(key: string): Promise<Record<string, string>> {
  const settings = await store.hgetall(key);
  return Object.fromEntries(Object.entries(settings).filter(([field]) => !/^n\d+$/.test(field)));
}

describe('an apply', () => {
  let source: string;
  let whole: Record<string, unknown>;

  beforeAll(async () => {
    source = writeSource({
      organizations: [{ organizationId: 'acme' }, { organizationId: 'other' }],
      objects: [
        { organizationId: 'acme', datasourceId: 'd', objectDefinitionId: 'o', url: 'https://x.example' },
      ],
      denylist: [{ organizationId: 'acme', username: 'root' }],
      profiles: profiles(many),
    });
    const tool = createTool();
    expect((await tool.json('apply', '--source', source)).exitCode).toBe(0);
    whole = await keysOf(tool.prefix);
  });

  /** Resolves when the process has written this many profiles, or has ended. */
  async function written(tool: Tool, count: number, end: Promise<unknown>): Promise<void> {
    let hasEnded = false;
    void end.then(() => (hasEnded = true));
    const key = `${tool.prefix}{other}:p:user-${count - (count % 3) + 1}`;
    await until(async () => hasEnded || (await store.exists(key)));
  }

  test.each([0, 1300, 2900])(
    'killed after about %i profiles ends, by the same command, as if it had not been',
    async (count) => {
      const tool = createTool();
      const args = ['apply', '--source', source, '--batch', '50', '--rate', '20000'];
      const child = tool.start(...args);
      const end = ended(child);
      await written(tool, count, end);
      child.kill('SIGKILL');
      await end;
      const status = await tool.json('status');
      expect(status.exitCode).toBe(0);
      const again = await tool.json(...args.slice(0, 5));
      expect(again).toMatchObject({ exitCode: 0, json: { ok: true, read: many + 4 } });
      expect(await keysOf(tool.prefix)).toEqual(whole);
      expect((await tool.json('verify', '--source', source)).json).toMatchObject({
        ok: true,
        differences: 0,
      });
    },
  );

  test('interrupted by SIGINT finishes its batch, says how to go on, and goes on there', async () => {
    const tool = createTool();
    const child = tool.start('apply', '--source', source, '--batch', '50', '--rate', '1000', '--run', 'slow');
    const end = ended(child);
    await written(tool, 600, end);
    child.kill('SIGINT');
    const { code, err, out } = await end;
    expect({ code, err }).toMatchObject({
      code: 130,
      err: expect.stringContaining('run the same command again'),
    });
    expect(JSON.parse(out)).toMatchObject({ state: 'interrupted' });
    expect((await tool.json('status', '--run', 'slow')).json).toMatchObject({ phase: 'interrupted' });
    const again = await tool.json('apply', '--source', source, '--batch', '50', '--run', 'slow');
    expect(again).toMatchObject({ exitCode: 0, json: { resumed: true, created: many + 4, read: many + 4 } });
    expect(await keysOf(tool.prefix)).toEqual(whole);
    expect((await tool.json('status', '--run', 'slow')).json).toMatchObject({ phase: 'finished' });
  });

  test('is shown by status while it reads the source, before anything is written', async () => {
    const tool = createTool();
    expect((await tool.text('status')).out).toBe('No migration has been started yet.\n');
    expect(await tool.text('status', '--run', 'r')).toMatchObject({
      exitCode: 1,
      err: 'error: there is no run r: no migration has been started yet\n',
    });
    const whileReading = async (look: () => Promise<void>) =>
      await whileLocked(createTestContext(store, tool.prefix), 'r', look);
    await whileReading(async () => {
      expect((await tool.json('status')).json).toMatchObject({ runs: [{ run: 'r', phase: 'reading' }] });
      expect((await tool.text('status', '--run', 'r')).out).toMatch(
        /^Run r: reading the source \(process \d+ on .+\); nothing has been written yet\n$/,
      );
    });
    expect((await tool.json('status')).json).toMatchObject({ runs: [{ run: 'r', phase: 'interrupted' }] });
    await tool.json('apply', '--source', writeSource({ profiles: profiles(1) }), '--run', 'r');
    await whileReading(async () => {
      expect((await tool.text('status')).out).toMatch(
        /^Run r from .+: reading the source again .+; the previous round finished .+\n.+\nprofiles +100 % +1 /,
      );
    });
    expect((await tool.json('status')).json).toMatchObject({ runs: [{ phase: 'finished' }] });
  });

  test('of one run refuses a second one while it is running, which leaves its report alone', async () => {
    const tool = createTool();
    const child = tool.start('apply', '--source', source, '--batch', '50', '--rate', '200');
    const end = ended(child);
    await written(tool, 60, end);
    const report = join(newFolder(), 'report.ndjson');
    writeFileSync(report, 'reported so far\n');
    const second = await tool.json('apply', '--source', source, '--report', report);
    expect(readFileSync(report, 'utf8')).toBe('reported so far\n');
    expect(second).toMatchObject({ exitCode: 1, err: expect.stringContaining(`process ${child.pid ?? 0}`) });
    expect((await tool.json('status')).json).toMatchObject({ runs: [{ phase: 'running' }] });
    child.kill('SIGKILL');
    await end;
    expect(await tool.json('apply', '--source', source)).toMatchObject({ exitCode: 0 });
  });

  test('whose Redis is full says so, and is resumed once there is room', async () => {
    const redis = await startRedis(['--maxmemory', '2mb', '--maxmemory-policy', 'noeviction']);
    try {
      const tool = createTool(redis.url, 'pb:');
      expect(await tool.json('apply', '--source', source)).toMatchObject({
        exitCode: 1,
        err: expect.stringMatching(/^error: Redis is full \(OOM .*\): raise its maxmemory, .*\n$/),
      });
      const direct = await openTestStore(redis.url);
      await direct.config('SET', 'maxmemory', '0');
      await closeRedis(direct);
      expect(await tool.json('apply', '--source', source)).toMatchObject({ exitCode: 0 });
    } finally {
      await redis.stop();
    }
  });

  test('whose Redis is killed says so, and is resumed when Redis is back', async () => {
    const folder = newFolder();
    const port = await unusedPort();
    const args = ['--port', String(port), '--appendonly', 'yes', '--appendfsync', 'always', '--dir', folder];
    const first = await startRedis(args);
    const tool = createTool(first.url, 'pb:');
    const child = tool.start('apply', '--source', source, '--batch', '50', '--rate', '1000');
    const end = ended(child);
    const direct = await openTestStore(first.url);
    await until(() => direct.exists('pb:{acme}:p:user-300'));
    await closeRedis(direct);
    process.kill(first.pid, 'SIGKILL');
    const { code, err } = await end;
    expect({ code, err }).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /^error: the connection to Redis was lost \((?!Reached the max retries).*\n$/,
      ),
    });
    await first.stop();
    const second = await startRedis(args);
    try {
      expect(await tool.json('apply', '--source', source)).toMatchObject({ exitCode: 0, json: { ok: true } });
      expect((await tool.json('verify', '--source', source)).json).toMatchObject({ ok: true });
    } finally {
      await second.stop();
    }
  });

  test('that is repeated writes only what has changed, even if thousands of rows share one timestamp', async () => {
    const same = (name: string): object[] =>
      Array.from({ length: 3000 }, (_, at) => ({
        organizationId: 'acme',
        userId: `user-${at}`,
        username: at % 1000 === 7 ? `${name}-${at}` : `name-${at}`,
        updatedAt: T,
      }));
    const folder = writeSource({ organizations: [{ organizationId: 'acme' }], profiles: same('first') });
    const tool = createTool();
    expect((await tool.json('apply', '--source', folder)).json).toMatchObject({ created: 3001 });
    expect((await tool.json('apply', '--source', folder)).json).toMatchObject({
      written: 0,
      unchanged: 3001,
    });
    writeSource({ profiles: same('second') }, folder);
    expect((await tool.json('apply', '--source', folder)).json).toMatchObject({
      updated: 3,
      unchanged: 2998,
    });
    expect((await tool.json('verify', '--source', folder)).json).toMatchObject({ ok: true });
  });

  test('of another source under the same name is refused unless --fresh is given', async () => {
    const tool = createTool();
    const [one, other] = [writeSource({ profiles: profiles(3) }), writeSource({ profiles: profiles(3, 50) })];
    expect(await tool.json('apply', '--source', one, '--run', 'x')).toMatchObject({ exitCode: 0 });
    expect(await tool.json('apply', '--source', other, '--run', 'x')).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('--fresh'),
    });
    expect(await tool.json('apply', '--source', other, '--run', 'x', '--fresh')).toMatchObject({
      exitCode: 0,
    });
  });

  test('can be limited to some entities and to one organization', async () => {
    const tool = createTool();
    const first = await tool.json('apply', '--source', source, '--entities', 'organizations,denylist');
    expect(first.json).toMatchObject({ created: 3 });
    const second = await tool.json('apply', '--source', source, '--org', 'acme');
    expect(second.json).toMatchObject({ created: many / 3 + 1, unchanged: 2 });
    expect((await tool.json('verify', '--source', source, '--org', 'acme')).exitCode).toBe(0);
    expect((await tool.json('verify', '--source', source)).exitCode).toBe(1);
  });

  test('writes no more records a second than --rate allows', async () => {
    const tool = createTool();
    const folder = writeSource({ profiles: profiles(400) });
    const { json } = await tool.json('apply', '--source', folder, '--rate', '400');
    expect(json['seconds']).toBeGreaterThan(0.6);
  });

  test('leaves no temporary files behind', async () => {
    const folder = newFolder();
    const before = process.env['TMPDIR'];
    process.env['TMPDIR'] = folder;
    try {
      const tool = createTool();
      await tool.json('apply', '--source', writeSource({ profiles: [...profiles(50), ...profiles(50)] }));
      expect(readdirSync(folder).filter((name) => name.startsWith('profile-bridge-'))).toEqual([]);
    } finally {
      if (before === undefined) delete process.env['TMPDIR'];
      else process.env['TMPDIR'] = before;
    }
  });
});

describe('while a bridge is running', () => {
  let bridge: TestBridge;
  let tool: Tool;

  beforeAll(async () => {
    bridge = await startBridge({ keyPrefix: freshPrefix() });
    tool = createTool(bridge.config.redisUrl, bridge.config.keyPrefix);
  });

  afterAll(async () => {
    await bridge.close();
  });

  test('legacy keys work at once, plain or hashed, and are shown nowhere', async () => {
    const report = join(newFolder(), 'report');
    const folder = writeSource({
      organizations: [{ organizationId: 'keys' }],
      'api-keys': [
        { organizationId: 'keys', apiKey: 'plain-secret', role: 'player', userId: 'u1', client: 'ios' },
        {
          organizationId: 'keys',
          // SHA-256 of "hashed-secret"
          apiKeySha256: '4e598f5daafc2fda61641ddbb5956deb23fde6616366dc9dd5a7c9f47da4d787',
          role: 'admin',
        },
        { organizationId: 'keys', apiKey: 'broken-secret', role: 'king' },
      ],
      profiles: [{ organizationId: 'keys', userId: 'u1', username: 'ann' }],
    });
    const args = ['--source', folder, '--on-conflict', 'skip', '--report', report];
    const calls = [
      await tool.text('plan', ...args),
      await tool.text('apply', ...args),
      await tool.text('status'),
    ];
    const said = JSON.stringify(calls) + readFileSync(report, 'utf8');
    expect(said).not.toContain('secret');
    const { organizationHeader } = bridge.config;
    const client = createClient(bridge.url, {
      organization: 'keys',
      apiKey: 'plain-secret',
      organizationHeader,
    });
    expect(await client.request('GET', '/api/profile/')).toMatchObject({
      status: 200,
      body: { username: 'ann' },
    });
  });

  test('what was written through the bridge since is neither overwritten nor pruned', async () => {
    const organization = await bridge.newOrganization({}, 'live');
    const source = writeSource({
      organizations: [{ organizationId: 'live', usernameMinLength: 5 }],
      denylist: [
        { organizationId: 'live', username: 'denied' },
        { organizationId: 'live', username: 'undenied' },
      ],
      profiles: [
        { organizationId: 'live', userId: 'u1', username: 'legacy-name', updatedAt: T },
        { organizationId: 'live', userId: 'u2', username: 'wanted', updatedAt: T },
      ],
    });
    const run = ['--source', source, '--run', 'live'];
    expect(await tool.json('apply', ...run)).toMatchObject({ exitCode: 0, json: { kept: 1, created: 4 } });
    const [player, newcomer, admin] = [
      await organization.player('u1'),
      await organization.player('u3'),
      await organization.admin(),
    ];
    await player.request('PUT', '/api/profile/', { json: { username: 'bridge-name' } });
    await newcomer.request('PUT', '/api/profile/', { json: { username: 'legacy-name' } });
    await admin.request('POST', '/api/profile/username/deny/', { json: { banned: 'x' } });
    await admin.request('DELETE', '/api/profile/username/deny/', { json: ['undenied'] });

    // u1 has another name here by now, so its old one was free for u3: no conflict, since u1 stays as it is.
    const again = await tool.json('apply', ...run, '--prune');
    expect(again).toMatchObject({ exitCode: 0, json: { written: 0, conflicts: 0, pruned: {} } });
    const verified = await tool.json('verify', ...run);
    expect(verified).toMatchObject({ exitCode: 0, json: { differences: 0, changedHere: 5 } });
    const contents = await tool.contents();
    const live = (file: string): unknown[] =>
      (contents[file] ?? '')
        .split('\n')
        .filter((line) => line.includes('"live"'))
        .map((line) => (JSON.parse(line) as { username: string }).username);
    expect(live('profiles.ndjson')).toEqual(['bridge-name', 'wanted', 'legacy-name']);
    expect(live('denylist.ndjson')).toEqual(['banned', 'denied']);
  });

  test('a name taken through the bridge is a conflict, found before anything is written', async () => {
    const organization = await bridge.newOrganization({}, 'taken');
    const player = await organization.player('here');
    await player.request('PUT', '/api/profile/', { json: { username: 'ann' } });
    const source = writeSource({
      profiles: [{ organizationId: 'taken', userId: 'legacy', username: 'ann' }],
    });
    expect(await tool.json('plan', '--source', source)).toMatchObject({
      exitCode: 1,
      json: { conflicts: 1 },
    });
    expect(await tool.json('apply', '--source', source)).toMatchObject({ exitCode: 1, json: { written: 0 } });
    const skipped = await tool.json('apply', '--source', source, '--on-conflict', 'drop-username');
    expect(skipped).toMatchObject({ exitCode: 0, json: { created: 1 } });
  });
});

test('plan counts a new user who takes the name of one who is pruned as created', async () => {
  const tool = createTool();
  const user = (number: number, name = number) => ({
    organizationId: 'acme',
    userId: `u${number}`,
    username: `name-${name}`,
  });
  const before = Array.from({ length: 20 }, (_, at) => user(at));
  const source = writeSource({ profiles: before });
  await tool.json('apply', '--source', source);
  writeSource({ profiles: [...before.slice(1), user(20, 0)] }, source);
  const counts = { created: 1, updated: 0, unchanged: 19 };
  expect((await tool.json('plan', '--source', source, '--prune')).json).toMatchObject(counts);
  expect((await tool.json('apply', '--source', source, '--prune')).json).toMatchObject(counts);
});

test('a report can be written to a device, such as standard output', async () => {
  const source = writeSource({ profiles: [{ organizationId: 'acme' }] });
  expect(await createTool().json('plan', '--source', source, '--report', '/dev/null')).toMatchObject({
    exitCode: 1,
    json: { invalid: 1 },
  });
});

test('a report never overwrites what is read', async () => {
  const tool = createTool();
  const folder = writeSource({ profiles: profiles(2) });
  const [file, link, kept] = ['profiles.ndjson', 'link', 'report.ndjson'].map((name) => join(folder, name));
  if (file === undefined || link === undefined || kept === undefined) throw new Error('no paths');
  symlinkSync(file, link);
  const before = readFileSync(file, 'utf8');
  for (const [from, report] of [
    [folder, file],
    [file, file],
    [folder, link],
  ] as const) {
    expect(await tool.text('apply', '--source', from, '--report', report)).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('is read, and a report would overwrite it: give --report another file'),
    });
    expect(readFileSync(file, 'utf8')).toBe(before);
  }
  // Beside the source's files, it is written again and again.
  for (const _ of [1, 2])
    expect(await tool.text('apply', '--source', folder, '--report', kept)).toMatchObject({ exitCode: 0 });
});

test('--report refuses a name that would be read as a source, or would replace a file of an export', async () => {
  const tool = createTool();
  const source = writeSource({ profiles: profiles(2) });
  const backup = join(newFolder(), 'backup');
  await tool.json('apply', '--source', source);
  await tool.json('export', '--to', backup);
  const before = readFileSync(join(backup, 'profiles.ndjson'), 'utf8');
  for (const report of [
    join(backup, 'profiles.ndjson'),
    join(backup, 'manifest.json'),
    join(source, 'denylist.ndjson'),
    join(source, 'api-keys.csv'),
  ]) {
    expect(await tool.text('plan', '--source', source, '--report', report)).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(
        / has the name of a file of a source or an export, .* --report another name/,
      ),
    });
  }
  expect(readFileSync(join(backup, 'profiles.ndjson'), 'utf8')).toBe(before);
  expect(readdirSync(source)).toEqual(['profiles.ndjson']);
});

test('a report path that cannot be used is an error before anything is done', async () => {
  const tool = createTool();
  const source = writeSource({ profiles: profiles(1) });
  writeFileSync(join(source, 'file'), '');
  const call = await tool.json('apply', '--source', source, '--report', join(source, 'file', 'report'));
  expect(call).toMatchObject({ exitCode: 2, err: expect.stringContaining('--report') });
});

test('a report that does not fit on its disk ends the command in one line with the remedy', async () => {
  const source = writeSource({ profiles: Array.from({ length: 2000 }, () => ({ organizationId: 'acme' })) });
  expect(await createTool().json('plan', '--source', source, '--report', '/dev/full')).toMatchObject({
    exitCode: 1,
    err: expect.stringMatching(
      /^error: \/dev\/full cannot be written \(ENOSPC, no space is left\): .*--report/,
    ),
  });
});

test('plan shows examples of changes field by field, and its JSON has counts by organization', async () => {
  const tool = createTool();
  const profile = { organizationId: 'acme', userId: 'u', username: 'old', updatedAt: 1_700_000_000_000 };
  const first = writeSource({ profiles: [profile, { organizationId: 'other', userId: 'v' }] });
  await tool.json('apply', '--source', first, '--run', 'r');
  const second = writeSource({
    profiles: [
      {
        ...profile,
        username: 'new',
        profilePictureUrl: 'https://x.example/1',
        avatar: { datasourceId: 'shop', objectDefinitionId: 'hat' },
        updatedAt: 1_700_000_000_001,
      },
      { organizationId: 'other', userId: 'v' },
      { organizationId: 'other', userId: 'w' },
    ],
  });
  const { json } = await tool.json('plan', '--source', second, '--run', 'r');
  expect(json['changes']).toEqual([
    {
      entity: 'profiles',
      where: 'profiles.ndjson:1',
      organizationId: 'acme',
      userId: 'u',
      differences: [
        { field: 'username', redis: 'old', source: 'new' },
        { field: 'profilePictureUrl', source: 'https://x.example/1' },
        { field: 'avatar', source: 'shop\nhat' },
        { field: 'updatedAt', redis: '1700000000000', source: '1700000000001' },
      ],
    },
  ]);
  expect(json['organizations']).toMatchObject({
    acme: { created: 0, updated: 1, unchanged: 0 },
    other: { created: 1, updated: 0, unchanged: 1 },
  });
  const { out } = await tool.text('plan', '--source', second, '--run', 'r');
  expect(out).toContain(
    [
      'Updates (1 of 1), from Redis to the source:',
      '  profiles  profiles.ndjson:1 (organization "acme", user "u")',
      '    username: "old" -> "new"',
      '    profilePictureUrl: absent -> "https://x.example/1"',
      '    avatar: absent -> {"datasourceId":"shop","objectDefinitionId":"hat"}',
      '    updatedAt: 2023-11-14T22:13:20Z -> 2023-11-14T22:13:20.001Z',
    ].join('\n'),
  );
});

test('default settings are unchanged, whether the source gave them, the operator, or nobody', async () => {
  const tool = createTool();
  expect(await runTool(tool.env, 'org set operated')).toMatchObject({ code: 0 });
  await tool.json('apply', '--source', writeSource({ profiles: [{ organizationId: 'acme', userId: 'u' }] }));
  const ids = ['acme', 'operated', 'given'];
  const source = writeSource({ organizations: ids.map((organizationId) => ({ organizationId })) });
  await tool.json('apply', '--source', source, '--org', 'given');
  const { json } = await tool.json('plan', '--source', source);
  expect(json).toMatchObject({ unchanged: 3, updated: 0, kept: 0, changes: [] });
});

test('plan and verify show a picture uploaded here for which the source has another one, or none', async () => {
  const tool = createTool();
  const file = (name: string): string => `https://bridge.example.com/media/${name.repeat(22)}.png`;
  const withPicture = (profilePictureUrl: string | undefined): string =>
    writeSource({
      profiles: [{ organizationId: 'acme', userId: 'u', username: 'ann', profilePictureUrl, updatedAt: T }],
    });
  await tool.json('apply', '--source', withPicture(file('a')), '--run', 'r');
  const redis = `${'a'.repeat(22)}.png`;
  for (const [url, wanted] of [
    [undefined, 'absent'],
    [file('b'), `"${'b'.repeat(22)}.png"`],
  ]) {
    const { json } = await tool.json('plan', '--source', withPicture(url), '--run', 'r');
    expect(json['changes']).toMatchObject([
      { userId: 'u', differences: [{ field: 'profilePictureUrl', redis }] },
    ]);
    const { out } = await tool.text('verify', '--source', withPicture(url), '--run', 'r');
    expect(out).toContain(`profilePictureUrl is "${redis}", should be ${wanted}`);
  }
});

test('verify says when no apply has had the name of its run, for it then misses what that apply has left', async () => {
  const tool = createTool();
  const profile = { organizationId: 'acme', userId: 'u' };
  await tool.json(
    'apply',
    '--source',
    writeSource({ profiles: [profile, { organizationId: 'gone', userId: 'v' }] }),
    '--run',
    'r',
  );
  const source = writeSource({ profiles: [profile] });
  expect(await tool.text('verify', '--source', source, '--run', 'r')).toMatchObject({
    exitCode: 1,
    out: expect.not.stringContaining('There is no run'),
  });
  expect(await tool.text('verify', '--source', source, '--run', 'misspelled')).toMatchObject({
    exitCode: 0,
    out: expect.stringContaining(
      'There is no run misspelled: if the source was applied under another name, verify with the --run of that apply.',
    ),
  });
});

test('verify shows a stored time that is none, and apply replaces one that is not a number', async () => {
  const tool = createTool();
  const profile = { organizationId: 'acme', userId: 'u1', updatedAt: '2026-01-01T00:00:00Z' };
  const run = ['--source', writeSource({ profiles: [profile] }), '--run', 'r'];
  await tool.json('apply', ...run);
  for (const time of ['99999999999999999', 'yesterday']) {
    await store.hset(`${tool.prefix}{acme}:p:u1`, 't', time);
    const { out } = await tool.text('verify', ...run);
    expect(out).toContain(`updatedAt is "${time}", should be 2026-01-01T00:00:00Z`);
  }
  expect(await tool.json('apply', ...run)).toMatchObject({ exitCode: 0, json: { updated: 1 } });
  expect(await tool.json('verify', ...run)).toMatchObject({ exitCode: 0 });
});

test('status of a finished run is 100 %, even if records were refused', async () => {
  const tool = createTool();
  const records = Array.from({ length: 30 }, (_, at) => ({
    organizationId: 'acme',
    userId: `u${at}`,
    username: `name-${at}`,
  }));
  const clash = { organizationId: 'acme', userId: 'late', username: 'name-0' };
  await tool.json('apply', '--source', writeSource({ profiles: records.slice(0, 3) }), '--run', 'r');
  const source = writeSource({ profiles: [...records, clash, clash] });
  const args = ['--source', source, '--run', 'r', '--fresh', '--on-conflict', 'skip'];
  expect(await tool.json('apply', ...args)).toMatchObject({ exitCode: 0, json: { conflicts: 1 } });
  expect((await tool.json('status', '--run', 'r')).json).toMatchObject({
    phase: 'finished',
    entities: { profiles: { progress: 1, isDone: true } },
  });
});
