import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { RedisKey } from 'ioredis';
import { exportRecords } from '../../src/migration/engine/export/export.ts';
import { namesBucketKey, organizationBase, organizationsKey, profileKey } from '../../src/redis/keys.ts';
import { startBridge } from '../support/bridge.ts';
import { interceptCalls } from '../support/store.ts';
import { useTestStore } from '../support/use-store.ts';
import { programOf } from '../support/run/program.ts';
import { freshPrefix } from '../support/redis.ts';
import { inSmallDisk, testWithMounts } from './small-disk.ts';
import { thisProcess } from '../../src/lib/system/process-identity.ts';
import { createTestContext } from './test-context.ts';
import { runTool } from '../support/tools/admin.ts';
import { createTool, ended, newFolder, writeSource, type Tool } from '../support/tools/migrate.ts';
import { revokeApiKey } from '../../src/redis/operator/api-keys.ts';

const redis = await useTestStore();

const id = fc
  .oneof(
    fc.constantFrom('acme', '{x}', '__proto__', 'a:b', 'ü', '1'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
  )
  .filter((text) => !/\p{Cc}/u.test(text));
const url = fc.oneof(
  fc.webUrl(),
  fc.string({ unit: 'binary', minLength: 1 }),
  fc.constant(`https://bridge.example.com/media/${'x'.repeat(22)}.png`),
);
const reference = { datasourceId: id, objectDefinitionId: id };
const wallet = fc
  .array(fc.constantFrom(...'0123456789abcdefABCDEF'.split('')), { minLength: 40, maxLength: 40 })
  .map((digits) => `0x${digits.join('')}`);
const organizationId = fc.constantFrom('acme', '{other}', 'Ω');
const optional = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(value, { nil: undefined });

const records = fc.record({
  organizations: fc.array(
    fc.record({
      organizationId,
      usernameMinLength: optional(fc.integer({ min: 1, max: 3 })),
      usernameMaxLength: optional(fc.integer({ min: 3, max: 256 })),
      usernameComparison: optional(fc.constantFrom('exact', 'case-insensitive')),
      usernamePattern: optional(fc.constantFrom('[a-z]+', '.*')),
      objectImageUrlTemplate: optional(fc.constant('https://x.example/{datasourceId}')),
      requireOwnership: optional(fc.boolean()),
    }),
    { maxLength: 4 },
  ),
  'api-keys': fc.array(
    fc.record({
      organizationId,
      apiKey: fc.string({ minLength: 1 }).filter((key) => key.isWellFormed()),
      role: fc.constantFrom('player', 'admin'),
      userId: optional(id),
      client: optional(id),
      expiresAt: optional(fc.integer({ min: 0, max: 4e12 })),
    }),
    { maxLength: 4 },
  ),
  objects: fc.array(fc.record({ organizationId, ...reference, url }), { maxLength: 4 }),
  collections: fc.array(fc.record({ organizationId, userId: id, ...reference }), { maxLength: 4 }),
  profiles: fc.array(
    fc.record({
      organizationId,
      userId: id,
      username: optional(id),
      profilePictureUrl: optional(url),
      profilePictureObjectDefinitionId: optional(fc.record(reference)),
      avatar: optional(fc.record({ ...reference, url: optional(url) })),
      evmWalletAddress: optional(wallet),
      evmWalletVerified: optional(fc.boolean()),
      updatedAt: optional(fc.integer({ min: 0, max: 4e12 })),
    }),
    { maxLength: 12 },
  ),
  denylist: fc.array(fc.record({ organizationId, username: id }), { maxLength: 4 }),
});

test('an export of a store without organizations, as with a wrong KEY_PREFIX, is an error', async () => {
  const tool = createTool();
  const to = join(newFolder(), 'export');
  expect(await tool.text('export', '--to', to)).toMatchObject({
    exitCode: 1,
    err: expect.stringContaining(
      'there is nothing to export: Redis has no organization under this KEY_PREFIX',
    ),
  });
  expect(existsSync(to)).toBe(false);
});

test('an export leaves out no organization that the registry has lost: it fails, and says what to do', async () => {
  const tool = createTool();
  const profiles = ['acme', 'other'].map((name) => ({ organizationId: name, userId: 'u1' }));
  await tool.json('apply', '--source', writeSource({ profiles }));
  await redis.srem(organizationsKey(tool.prefix), 'acme');
  const to = join(newFolder(), 'export');
  const { exitCode, err } = await tool.text('export', '--to', to);
  expect([exitCode, err]).toEqual([
    1,
    expect.stringMatching(/organization "acme" is not in the registry .* fsck --repair, then export again/),
  ]);
  expect(existsSync(join(to, 'manifest.json'))).toBe(false);
  // One that is asked for by name is found in any case.
  const alone = await tool.json('export', '--to', join(newFolder(), 'one'), '--org', 'acme');
  expect(alone).toMatchObject({ exitCode: 0, json: { entities: { profiles: 1 } } });
  expect(await runTool(tool.env, 'fsck --repair')).toMatchObject({ code: 0 });
  const whole = await tool.json('export', '--to', to);
  expect(whole).toMatchObject({ exitCode: 0, json: { entities: { profiles: 2 } } });
});

test('an export that is applied to an empty store verifies, and is exported again byte for byte', async () => {
  await fc.assert(
    fc.asyncProperty(records, async (files) => {
      const [first, second] = [createTool(), createTool()];
      const source = writeSource(files);
      const applied = await first.json('apply', '--source', source, '--on-conflict', 'skip');
      expect(applied).toMatchObject({ exitCode: 0 });
      expect(await first.json('verify', '--source', source)).toMatchObject({
        exitCode: 0,
        json: { differences: 0 },
      });
      const exported = await first.contents();
      const backup = newFolder();
      for (const [name, text] of Object.entries(exported)) writeFileSync(join(backup, name), text);
      expect(await second.json('apply', '--source', backup)).toMatchObject({ exitCode: 0 });
      expect(await second.contents()).toEqual(exported);
      const verified = await second.json('verify', '--source', backup);
      expect(verified).toMatchObject({ exitCode: 0, json: { differences: 0, changedHere: 0 } });
    }),
    { numRuns: 12, endOnFailure: true },
  );
});

test('an export includes what clients wrote through the bridge, but no revoked key', async () => {
  const bridge = await startBridge({ keyPrefix: freshPrefix() });
  try {
    const tool = createTool(bridge.config.redisUrl, bridge.config.keyPrefix);
    const organization = await bridge.newOrganization({}, 'acme');
    const player = await organization.player('u1');
    await player.request('PUT', '/api/profile/', { json: { username: 'ann' } });
    const { keyId } = await organization.newKey({ role: 'admin' });
    await revokeApiKey(bridge.store, organization.base, keyId);
    const to = join(newFolder(), 'out');
    const call = await tool.json('export', '--to', to);
    expect(call.json).toMatchObject({
      entities: { organizations: 1, 'api-keys': 1, profiles: 1 },
      issues: { 'api-keys': { 'revoked-key-left-out': 1 } },
    });
    const again = await tool.json('export', '--to', to);
    expect(again).toMatchObject({ exitCode: 2, err: expect.stringContaining('not empty') });
    expect((await tool.json('verify', '--source', to)).exitCode).toBe(0);
  } finally {
    await bridge.close();
  }
});

test('an export leaves out a key that is revoked while it is read', async () => {
  const bridge = await startBridge({ keyPrefix: freshPrefix() });
  const { store, config } = bridge;
  const context = createTestContext(store, config.keyPrefix);
  try {
    const { base, newKey } = await bridge.newOrganization({}, 'acme');
    const { keyId } = await newKey({ role: 'admin' });
    const hgetall = store.hgetall.bind(store);
    store.hgetall = async (key: RedisKey) => {
      if (String(key).includes(':key:')) await revokeApiKey(store, base, keyId);
      return await hgetall(key);
    };
    const written = await exportRecords(context, join(newFolder(), 'out'), ['api-keys'], undefined);
    expect(written.get('api-keys')).toBe(0);
    expect(context.issues.count(['revoked-key-left-out'])).toBe(1);
  } finally {
    context.workspace.close();
    await bridge.close();
  }
});

test('an export tells of a username that changed hands while it was read, for it cannot be restored as it is', async () => {
  const tool = await withProfiles(60);
  const base = organizationBase(tool.prefix, 'acme');
  let isRenamed = false;
  const busy = interceptCalls(redis, async (make, command) => {
    const reply = await make();
    if (isRenamed || !command.startsWith('eval') || !JSON.stringify(reply).includes('"name 0"')) return reply;
    isRenamed = true;
    await redis.hset(profileKey(base, 'u0'), { u: 'new' });
    await redis.hset(profileKey(base, 'u9'), { u: 'name 0' });
    await redis.hset(namesBucketKey(base, '0', '0'), { new: 'u0', 'name 0': 'u9' });
    await redis.hdel(namesBucketKey(base, '0', '0'), 'name 9');
    return reply;
  });
  const context = createTestContext(busy, tool.prefix);
  const to = join(newFolder(), 'out');
  try {
    await exportRecords(context, to, ['profiles'], undefined);
  } finally {
    context.workspace.close();
  }
  const conflict = {
    reason: 'username-conflict',
    where: 'profiles.ndjson:60',
    detail: 'username "name 0" is also that of user "u0" at profiles.ndjson:1',
    userId: 'u9',
  };
  expect(context.issues.examples()).toMatchObject([conflict]);
  expect((await createTool().json('plan', '--source', to)).json).toMatchObject({ conflicts: 1 });

  const again = await tool.json('export', '--to', join(newFolder(), 'out'));
  expect(again).toMatchObject({ exitCode: 0, err: '' });
  await redis.hset(profileKey(base, 'u0'), { u: 'name 0' });
  const damaged = join(newFolder(), 'out');
  expect(await tool.json('export', '--to', damaged)).toMatchObject({
    exitCode: 1,
    err: expect.stringMatching(/export again; .* fsck$/m),
    json: { examples: [conflict] },
  });
  expect(readdirSync(damaged)).toContain('profiles.ndjson');
});

test('an export of an unknown organization is an error, and leaves no folder', async () => {
  const to = join(newFolder(), 'out');
  expect(await createTool().json('export', '--to', to, '--org', 'acmee')).toMatchObject({
    exitCode: 2,
    err: expect.stringContaining('there is no organization "acmee"'),
  });
  expect(existsSync(to)).toBe(false);
});

test('an export to a folder that cannot be written to is an error', async () => {
  const folder = join(newFolder(), 'closed');
  mkdirSync(folder);
  writeFileSync(join(folder, 'file'), '');
  for (const to of [join(folder, 'file', 'below'), '/proc/nobody/export']) {
    const tool = createTool();
    await tool.json('apply', '--source', writeSource({ organizations: [{ organizationId: 'acme' }] }));
    const call = await tool.json('export', '--to', to);
    expect(call).toMatchObject({ exitCode: 2, err: expect.stringContaining('--to') });
  }
});

/** A tool whose Redis holds this many profiles. */
async function withProfiles(count: number): Promise<Tool> {
  const tool = createTool();
  const profiles = Array.from({ length: count }, (_, n) => ({
    organizationId: 'acme',
    userId: `u${n}`,
    username: `name ${n}`,
  }));
  const source = writeSource({ organizations: [{ organizationId: 'acme' }], profiles });
  expect(await tool.json('apply', '--source', source)).toMatchObject({ exitCode: 0 });
  return tool;
}

describe('an export', () => {
  test('names its files in a manifest, with their records and checksums', async () => {
    const tool = await withProfiles(2);
    const to = join(newFolder(), 'out');
    await tool.json('export', '--to', to, '--entities', 'organizations,profiles');
    expect(readdirSync(to).sort()).toEqual(['manifest.json', 'organizations.ndjson', 'profiles.ndjson']);
    expect(JSON.parse(readFileSync(join(to, 'manifest.json'), 'utf8'))).toEqual({
      format: 'profile-bridge-export',
      files: {
        'organizations.ndjson': { records: 1, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
        'profiles.ndjson': { records: 2, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      },
    });
  });

  test('that was changed or has lost a file is refused by plan, apply and verify, while a compressed one is accepted', async () => {
    const tool = await withProfiles(3);
    const to = join(newFolder(), 'out');
    await tool.json('export', '--to', to);
    const path = join(to, 'profiles.ndjson');
    const whole = readFileSync(path, 'utf8');
    const commands = ['plan', 'apply', 'verify'];

    const shorter = whole.slice(0, whole.lastIndexOf('\n', whole.length - 2) + 1);
    for (const changed of [shorter, `\uFEFF${whole}`]) {
      writeFileSync(path, changed);
      for (const command of commands) {
        const call = await createTool().json(command, '--source', to);
        expect(call).toMatchObject({
          exitCode: 1,
          err: expect.stringMatching(
            /^error: profiles\.ndjson is not as it was exported \(manifest\.json\): /,
          ),
        });
      }
    }
    rmSync(path);
    for (const command of commands) {
      expect(await createTool().json(command, '--source', to)).toMatchObject({
        exitCode: 2,
        err: expect.stringContaining('is not a whole export: profiles.ndjson is missing'),
      });
    }
    writeFileSync(`${path}.gz`, gzipSync(whole));
    expect(await tool.json('verify', '--source', to)).toMatchObject({
      exitCode: 0,
      json: { differences: 0 },
    });
  });

  test('whose manifest counts other records is refused', async () => {
    const tool = await withProfiles(3);
    const to = join(newFolder(), 'out');
    await tool.json('export', '--to', to);
    const manifest = join(to, 'manifest.json');
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"records": 3', '"records": 4'));
    expect(await tool.json('plan', '--source', to)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('profiles.ndjson is not as it was exported (manifest.json)'),
    });
  });

  test('that is killed leaves nothing that looks like an export, and the next one starts over', async () => {
    const tool = await withProfiles(20_000);
    const to = join(newFolder(), 'out');
    mkdirSync(to);
    const watcher = watch(to);
    const begun = once(watcher, 'change');
    const child = tool.start('export', '--to', to);
    const end = ended(child);
    await begun;
    watcher.close();
    child.kill('SIGKILL');
    expect(await end).toMatchObject({ signal: 'SIGKILL' });
    expect(readdirSync(to)).toEqual(['.incomplete']);
    expect(await createTool().json('plan', '--source', to)).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('holds an export that did not finish'),
    });
    expect(await tool.json('export', '--to', to)).toMatchObject({
      exitCode: 0,
      json: { entities: { profiles: 20_000 } },
    });
    expect(readdirSync(to)).not.toContain('.incomplete');
    expect(await tool.json('verify', '--source', to)).toMatchObject({ exitCode: 0 });
  });

  test('that is killed while its files appear is refused as a source, and the next one starts over', async () => {
    const tool = await withProfiles(1);
    const to = join(newFolder(), 'out');
    await tool.json('export', '--to', to);
    // Such as it is left between two renames.
    const staging = join(to, '.incomplete');
    mkdirSync(staging);
    const { pid } = spawnSync('true');
    writeFileSync(join(staging, 'owner.json'), JSON.stringify({ ...thisProcess(), pid }));
    renameSync(join(to, 'profiles.ndjson'), join(staging, 'profiles.ndjson'));
    expect(await createTool().json('plan', '--source', to)).toMatchObject({ exitCode: 2 });
    expect(await tool.json('export', '--to', to, '--entities', 'profiles')).toMatchObject({ exitCode: 0 });
    expect(readdirSync(to)).toEqual(['manifest.json', 'profiles.ndjson']);
  });

  test('refuses a folder that another export is writing to', async () => {
    const tool = await withProfiles(1);
    const to = join(newFolder(), 'out');
    mkdirSync(join(to, '.incomplete'), { recursive: true });
    writeFileSync(join(to, '.incomplete', 'owner.json'), JSON.stringify(thisProcess()));
    expect(await tool.json('export', '--to', to)).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining(`process ${process.pid}`),
    });
  });

  testWithMounts('to a disk that is full says so in one line, and leaves nothing', async () => {
    const tool = await withProfiles(5000);
    const disk = newFolder();
    const call = `${process.execPath} ${programOf('scripts/migrate').join(' ')} export --to ${disk}/out; ls -A ${disk}/out >&2`;
    const { stderr } = inSmallDisk(disk, call, { ...process.env, NODE_OPTIONS: '', ...tool.env });
    expect(stderr).toMatch(
      /^error: \S+profiles\.ndjson cannot be written \(ENOSPC, no space is left\): free some space, or give --to another disk.*\n$/,
    );
  });
});
