import { beforeAll, expect, test } from '@jest/globals';
import { defaultSettings } from '../../../../src/domain/settings.ts';
import { createApiKey } from '../../../../src/redis/operator/api-keys.ts';
import {
  comparisonsKey,
  cutoverKey,
  failedAdoptionsKey,
  forwardedOrganizationsKey,
  gapsKey,
  hashApiKey,
  legacyPicturesKey,
  organizationBase,
  refusedKeysKey,
  unsettledKey,
} from '../../../../src/redis/keys.ts';
import { saveSettings } from '../../../../src/redis/organizations.ts';
import { runTool } from '../../../support/tools/admin.ts';
import { environmentFor, freshPrefix } from '../../../support/redis.ts';
import { useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();
const prefix = freshPrefix();
const at = Date.UTC(2025, 2, 1);
beforeAll(async () => {
  await store.hset(cutoverKey(prefix), { mode: 'reverse', epoch: 3, since: Date.now(), by: 'test' });
  await store.sadd(forwardedOrganizationsKey(prefix), 'acme');
  const users = Array.from({ length: 7 }, (_, n) => [
    `user-${n}`,
    JSON.stringify({ reason: 'mode-switched', at }),
  ]);
  await store.hset(failedAdoptionsKey(organizationBase(prefix, 'acme')), Object.fromEntries(users));
  await store.hset(unsettledKey(organizationBase(prefix, 'acme')), { 'user-9': `5:${at}:${at}` });
  await store.set(legacyPicturesKey(prefix), `1204 ${Date.now() - 3 * 60_000}`);
});

const run = async (command: string) => await runTool(environmentFor(prefix), command);

test('status names users whose change could not be adopted, and counts pictures that the legacy service shows', async () => {
  const { code, out } = await run('cutover status');
  const named = out.split('\n').filter((line) => line.startsWith('  acme, user user-'));
  expect(named).toHaveLength(5);
  expect(named[0]).toMatch(/: the mode was switched before it could be adopted \(2025-03-01T00:00:00Z\)$/);
  expect(out).toContain('Changes in doubt: 1; could not be brought over: 7\n');
  expect(out).toContain('Pictures at their legacy URLs: 1,204 (counted 3 min ago)\n');
  expect(out).toContain('warning: 1,204 users still have a picture at its legacy URL: copy them');
  expect(code).toBe(0);
});

test('status --json names more users whose change could not be adopted, with the reason', async () => {
  const { out } = await run('cutover status --json');
  expect(JSON.parse(out)).toMatchObject({
    comparisons: { failedAdoptions: 7 },
    organizations: [
      {
        organizationId: 'acme',
        unsettledUsers: 1,
        unsettledExamples: ['user-9'],
        failedAdoptions: 7,
        adoptionFailures: Array.from({ length: 7 }, () => ({ reason: 'mode-switched', at })),
      },
    ],
    legacyPictures: { count: 1204, countedAt: expect.any(String) },
    next: { to: 'native', ready: true, warnings: [{ code: 'unsettled' }, { code: 'legacy-pictures' }] },
  });
});

test('status says in which fields profiles differed since the mode began', async () => {
  const mirror = freshPrefix();
  const since = Date.now();
  await store.hset(cutoverKey(mirror), { mode: 'mirror', epoch: 1, since, by: 'test' });
  for (const organizationId of ['acme', 'other']) {
    await store.sadd(forwardedOrganizationsKey(mirror), organizationId);
    const counts = { same: 7, different: 3, 'field:username': 2, 'field:avatar.url': 1 };
    await store.hset(comparisonsKey(organizationBase(mirror, organizationId)), { since, ...counts });
  }
  const env = environmentFor(mirror);
  const { out } = await runTool(env, 'cutover status');
  expect(out).toContain('Comparisons: 20 made, 6 differed; users who differ now: 0\n');
  expect(out).toContain('  fields: username 4, avatar.url 2\n');
});

test('status counts gaps by reason until a clean verify has closed them', async () => {
  const mirror = freshPrefix();
  const key = cutoverKey(mirror);
  await store.hset(key, { mode: 'mirror', epoch: 1, since: at, by: 'test' });
  await store.hset(key, { gap: `${at} web-1 ended without stopping` });
  for (const organizationId of ['acme', 'other']) {
    await store.sadd(forwardedOrganizationsKey(mirror), organizationId);
    const gap = JSON.stringify({ count: 2, first: at, last: at });
    await store.hset(gapsKey(organizationBase(mirror, organizationId)), 'unknown-key', gap);
  }
  const env = environmentFor(mirror);
  const { out } = await runTool(env, 'cutover status');
  expect(out).toContain(
    'Gaps: unknown-key 4, instance-ended 1 (status --json has more)\n' +
      '  2025-03-01T00:00:00Z: web-1 ended without stopping\n',
  );
  await store.hset(key, { verified: at + 1 });
  for (const organizationId of ['acme', 'other'])
    await store.del(gapsKey(organizationBase(mirror, organizationId)));
  expect((await runTool(env, 'cutover status')).out).not.toMatch(/gap|web-1/i);
});

test('status names API keys that only Redis accepts by the ids with which they can be revoked', async () => {
  const mirror = freshPrefix();
  const base = organizationBase(mirror, 'acme');
  await store.hset(cutoverKey(mirror), { mode: 'mirror', epoch: 1, since: at, by: 'test' });
  await store.sadd(forwardedOrganizationsKey(mirror), 'acme');
  await saveSettings(store, mirror, 'acme', defaultSettings);
  const { apiKey, keyId } = await createApiKey(store, base, { role: 'player', userId: 'ada' });
  await store.hset(refusedKeysKey(base), hashApiKey(apiKey), JSON.stringify({ userAgent: 'game/7', at }));
  const env = environmentFor(mirror);
  const { out } = await runTool(env, 'cutover status');
  expect(out).toContain(
    'refused by the legacy service only: 1\n' +
      `  acme, key ${keyId}: refused by the legacy service, last seen 2025-03-01T00:00:00Z\n`,
  );
  expect(out).toContain(
    'wait for their next calls if the legacy service accepts them again; otherwise revoke them: profile-bridge admin key revoke --org ORG KEYID',
  );
  const json = JSON.parse((await runTool(env, 'cutover status --json')).out) as unknown;
  const fingerprint = hashApiKey(apiKey).slice(0, 12);
  expect(json).toMatchObject({ organizations: [{ refusedKeys: [{ fingerprint, keyId, lastSeen: at }] }] });
  expect((await runTool(env, `key revoke --org acme ${keyId}`)).code).toBe(0);
  expect((await runTool(env, 'cutover status')).out).toContain('refused by the legacy service only: 0\n');
});

test('status says after the last step how many pictures are still to be copied', async () => {
  const native = freshPrefix();
  await store.hset(cutoverKey(native), { mode: 'native', epoch: 4, since: at, by: 'test' });
  const env = environmentFor(native);
  const uncounted = await runTool(env, 'cutover status');
  expect(uncounted).toMatchObject({
    code: 0,
    out: expect.stringContaining('Pictures at their legacy URLs: not counted yet\n'),
  });
  await store.set(legacyPicturesKey(native), `1 ${Date.now()}`);
  const { out } = await runTool(env, 'cutover status');
  expect(out).toContain('Pictures at their legacy URLs: 1 (counted 0 min ago)\n');
});

test('status does not count pictures where no mode was ever set', async () => {
  const env = environmentFor(freshPrefix());
  expect((await runTool(env, 'cutover status')).out).not.toContain('Pictures');
});

test('status counts responses of the legacy service that could not be read, and says what to check', async () => {
  const shadow = freshPrefix();
  const since = Date.now();
  await store.hset(cutoverKey(shadow), { mode: 'shadow', epoch: 0, since, by: 'default' });
  await store.sadd(forwardedOrganizationsKey(shadow), 'acme');
  await store.hset(comparisonsKey(organizationBase(shadow, 'acme')), { since, unreadable: 5 });
  const env = environmentFor(shadow);
  const { out } = await runTool(env, 'cutover status');
  expect(out).toContain('Comparisons: 0 made, 0 differed, 5 could not be read; users who differ now: 0\n');
  expect(out).toContain(
    'warning: 5 responses of the legacy service to GET could not be read as profiles: check LEGACY_BASE_URL and what it answers to GET\n',
  );
  const json = JSON.parse((await runTool(env, 'cutover status --json')).out) as unknown;
  expect(json).toMatchObject({ comparisons: { compared: 0, unreadable: 5 } });
});
