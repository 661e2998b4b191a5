import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { startBridge } from '../support/bridge.ts';
import { freshPrefix } from '../support/redis.ts';
import { createTool, newFolder, writeSource } from './tool.ts';

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

test('what is exported and applied to an empty store is exported the same, byte for byte, and verifies', async () => {
  await fc.assert(
    fc.asyncProperty(records, async (files) => {
      const [first, second] = [createTool(), createTool()];
      const source = writeSource(files);
      const applied = await first.json('apply', '--source', source, '--on-conflict', 'skip');
      expect(applied).toMatchObject({ exitCode: 0, err: '' });
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
    { numRuns: 12 },
  );
}, 180_000);

test('an export has what the bridge itself made, but no revoked key', async () => {
  const bridge = await startBridge({ keyPrefix: freshPrefix() });
  try {
    const tool = createTool(bridge.config.redisUrl, bridge.config.keyPrefix);
    const organization = await bridge.newOrganization({}, 'acme');
    const player = await organization.player('u1');
    await player.request('PUT', '/api/profile/', { json: { username: 'ann' } });
    const { keyId } = await organization.newKey({ role: 'admin' });
    await bridge.store.revokeKey(organization.base, keyId);
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

test('an export of an organization that is not there says so, and leaves no folder', async () => {
  const to = join(newFolder(), 'out');
  expect(await createTool().json('export', '--to', to, '--org', 'acmee')).toMatchObject({
    exitCode: 2,
    err: expect.stringContaining('there is no organization "acmee"'),
  });
  expect(existsSync(to)).toBe(false);
});

test('an export to where nothing can be written says so', async () => {
  const folder = join(newFolder(), 'closed');
  mkdirSync(folder);
  writeFileSync(join(folder, 'file'), '');
  chmodSync(folder, 0o500);
  for (const to of [join(folder, 'file', 'below'), '/proc/nobody/export']) {
    const call = await createTool().json('export', '--to', to);
    expect(call).toMatchObject({ exitCode: 2, err: expect.stringContaining('--to') });
  }
});
